# Up, down and status.

up() {
  local cpu memory=8Gi code=0
  cpu=$(nproc)
  [ "$cpu" -le 2 ] || cpu=2
  while [ $# -gt 0 ]; do
    case $1 in
      --node-cpu) cpu=${2:?cluster: --node-cpu needs a number} ;;
      --node-memory) memory=${2:?cluster: --node-memory needs a size} ;;
      *) fail 2 "unknown argument '$1'; usage: tools/cluster up [--node-cpu N] [--node-memory N]" ;;
    esac
    shift 2
  done
  if [ -e "$state/complete" ] && all_machines_run; then
    say "cluster $cluster is up already"
    return
  fi
  need_programs containerd runc iptables conntrack socat docker-registry openssl nsenter pgrep ip
  build
  local reserved
  reserved=$(reserve "$cpu" "$memory") || exit 1
  claim
  echo "$reserved" >"$state/reserved"
  trap 'exit 130' INT
  trap 'exit 143' TERM
  trap 'code=$?; [ -e "$state/complete" ] || clean_up_failed; exit $code' EXIT
  # Runs in its own cgroup, so that `down` finds all its processes even if this one is killed.
  bash -c "$join_groups" "$(group_of up)" "$top/tools/cluster" up-inside || exit $?
  say "cluster $cluster is up after $SECONDS s; tools/cluster status shows it"
}

# Makes an empty state folder that this process owns. All clusters of this machine use the same lock,
# even with different caches: it is /tmp, where they share a folder.
claim() {
  (
    flock 9
    local pid since
    if read -r pid since 2>/dev/null <"$state/owner" && [ "$(start_of "$pid")" = "$since" ]; then
      fail 1 "process $pid is bringing cluster $cluster up; wait for it, or stop it with: tools/cluster down"
    fi
    clear_remains
    mkdir -p "$state/volumes" /tmp/hostpath_pv
    make_group "$(group_of up)" /sys/fs/cgroup/pids
    echo "$$ $(start_of $$)" >"$state/owner"
  ) 9</tmp || exit $?
}

# The start time of a process. Together with the process id it is unique.
start_of() { # PID
  local fields
  fields=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  fields=${fields##*) }
  # shellcheck disable=SC2086
  set -- $fields
  echo "${20}"
}

up_inside() {
  local node machine pid pids=()
  set -E
  trap 'echo "cluster: failed in ${BASH_SOURCE[0]##*/}, line $LINENO: $BASH_COMMAND" >&2' ERR
  echo "nameserver $cluster_address" >"$state/resolv.conf"
  printf '127.0.0.1 localhost\n%s cp registry.edl\n' "$cluster_address" >"$state/hosts"
  make_group "$(group_of relay)" /sys/fs/cgroup/pids

  make_certificates & pids+=($!)
  for node in $nodes; do
    mkdir -p "$state/$node/lib"
    copy_containerd "$node" & pids+=($!)
  done
  for machine in $machines; do
    start_machine "$machine" & pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || exit 1
  done

  lay_bridge
  start_etcd
  start_api_server
  for node in $nodes; do
    lay_cable "$node"
    start_containerd "$node"
  done
  start_relay api 127.0.0.1:6443
  sed "s#server: .*#server: https://127.0.0.1:$(<"$state/api.port")#" "$state/kubeconfig/admin.conf" >"$state/kubeconfig/host.conf"
  chmod 600 "$state/kubeconfig/host.conf"
  start_registry
  start_relay registry "$cluster_address:5000"

  wait_for_api 120 || exit 1
  start_controllers
  for node in $nodes; do
    start_kubelet "$node"
    start_proxy "$node"
  done
  start_dns
  first_objects
  for node in $nodes; do
    wait_for 120 "node $node (see $state/$node/kubelet.log)" node_ready "$node" || exit 1
  done
  # Without these, pods are rejected or wait for their token.
  wait_for 120 "the default service account (see $state/cp/kube-controller-manager.log)" \
    kubectl get serviceaccount/default configmap/kube-root-ca.crt || exit 1
  wait_for 30 "cluster DNS (see $state/cp/coredns.log)" dns_ready || exit 1
  touch "$state/complete"
}

dns_ready() {
  in_network cp bash -c 'exec 3<>/dev/tcp/127.0.0.1/8181 && printf "GET /ready HTTP/1.0\r\n\r\n" >&3 && grep -q "200 OK" <&3'
}

clean_up_failed() {
  # The logs of the programs explain the failure better than the timeout does.
  rm -rf "$cache/clusters.failed/$cluster"
  mkdir -p "$cache/clusters.failed/$cluster"
  (cd "$state" 2>/dev/null && cp --parents ./*/*.log "$cache/clusters.failed/$cluster/" 2>/dev/null) || true
  clear_remains || true
  clear_mount_point
  echo "cluster: could not be started; its logs are in $cache/clusters.failed/$cluster" >&2
}

down() {
  local was=down
  [ ! -e "$state" ] || was=up
  clear_remains || fail 1 "some processes of cluster $cluster are left; run tools/cluster down again"
  clear_mount_point
  if [ $was = up ]; then say "cluster $cluster is down"; else say "cluster $cluster was not up"; fi
}

# Ends and removes all parts of this cluster that exist. Namespaces, and with them mounts and network
# interfaces, disappear with their processes.
clear_remains() {
  local groups=(up relay) machine
  for machine in $machines; do groups+=("$machine"); done
  end_groups "${groups[@]/#/elasticdl.$cluster.}" && rm -rf "$state"
}

# Removes the mount point in /tmp if no other cluster uses it.
clear_mount_point() {
  (
    flock 9
    compgen -G '/sys/fs/cgroup/pids/elasticdl.*' >/dev/null || rmdir /tmp/hostpath_pv 2>/dev/null || true
  ) 9</tmp
}

all_machines_run() {
  local machine
  for machine in $machines; do
    init_of "$machine" >/dev/null || return 1
  done
}

status() {
  if ! is_up; then
    say "cluster $cluster is down"
    exit 3
  fi
  local machine off=
  for machine in $machines; do
    init_of "$machine" >/dev/null || off+=" $machine"
  done
  echo "cluster $cluster"
  echo "API server  https://127.0.0.1:$(<"$state/api.port") (kubeconfig $state/kubeconfig/host.conf)"
  echo "registry    127.0.0.1:$(<"$state/registry.port")"
  echo "logs        $state/{cp,n1,n2}/*.log"
  [ -z "$off" ] || echo "off        $off"
  echo
  kubectl get nodes -o wide --request-timeout=5s || echo "the API server does not answer; tools/cluster api-start starts it"
  echo
  kubectl get pods -A -o wide --request-timeout=5s 2>&1 || true
}

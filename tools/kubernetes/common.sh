# Names and paths of a cluster, messages, and waiting.

nodes="n1 n2"
machines="cp $nodes"
cluster_address=172.30.0.1 # of cp, as the machines see it
service_range=10.96.0.0/16
pod_range=10.244.0.0/16

say() {
  echo "cluster: $*"
}

fail() { # CODE MESSAGE
  local code=$1
  shift
  echo "cluster: $*" >&2
  exit "$code"
}

# Sets the paths of the cache that checkouts share, of the built programs and images, and of the state
# of this cluster.
name_things() {
  cache=${ELASTICDL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/elasticdl}/kubernetes
  # Machines mount their own folders over some paths, which would hide the programs.
  case $cache/ in
    *[[:space:]]*) fail 2 "the path of the cache, '$cache', contains a space; set ELASTICDL_CACHE to another folder" ;;
    /run/* | /var/lib/* | /var/log/* | /proc/* | /sys/*)
      fail 2 "the cache cannot be in $cache, where machines mount their own folders; set ELASTICDL_CACHE to another folder" ;;
  esac
  cluster=${ELASTICDL_CLUSTER:-$(printf %s "$top" | sha256sum | cut -c1-8)}
  # Without a dot, which separates the parts of the names of cgroups.
  [[ $cluster =~ ^[a-z0-9-]{1,24}$ ]] ||
    fail 2 "ELASTICDL_CLUSTER is '$cluster'; use 1 to 24 characters of a-z, 0-9 and -"
  state=$cache/clusters/$cluster
  [ ${#state} -le 90 ] ||
    fail 2 "the path $state is too long for a socket; set ELASTICDL_CACHE to a shorter path"
  programs=$cache/programs-$(hash_of "$parts"/build.sh "$parts"/{kwok,programs}/go.mod "$parts"/{kwok,programs}/go.sum "$parts"/programs/coredns/main.go)
  peers=$cache/peers-$(hash_of "$parts"/peers.sh "$parts"/{scheduler-plugins,training-operator}/go.{mod,sum} "$parts"/scheduler-plugins/main.go)
  images=$cache/images-$(hash_of "$parts/images.sh" "$parts/image_archive.py" "$parts/nginx")
}

hash_of() { # FILE...
  cat "$@" | sha256sum | cut -c1-12
}

need_root() {
  [ "$(id -u)" = 0 ] ||
    fail 77 "a cluster needs root (namespaces, mounts, cgroups); run it as root or with sudo -E"
  [ -d /sys/fs/cgroup/pids ] && [ -d /sys/fs/cgroup/memory ] ||
    fail 77 "a cluster needs cgroups of version 1 below /sys/fs/cgroup, which this machine does not mount"
}

# A reboot of this machine leaves the folder of a cluster that is not up.
is_up() {
  [ -e "$state/complete" ] && init_of cp >/dev/null
}

need_up() {
  is_up || fail 3 "cluster $cluster is not up; start it with: tools/cluster up"
}

need_programs() { # PROGRAM...
  local program
  for program in "$@"; do
    command -v "$program" >/dev/null ||
      fail 1 "$program is not installed; run: tools/setup (as root)"
  done
}

# Waits until COMMAND succeeds. After SECONDS it prints WHAT and fails.
wait_for() { # SECONDS WHAT COMMAND...
  local seconds=$1 what=$2 end
  shift 2
  end=$((SECONDS + seconds))
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $end ]; then
      echo "cluster: timed out after $seconds s waiting for $what" >&2
      return 1
    fi
    sleep 0.1
  done
}

kubectl() {
  "$programs/kubectl" --kubeconfig "$state/kubeconfig/host.conf" "$@"
}

node_name() { # 1, 2, n1 or n2
  case ${1:-} in
    1 | n1) echo n1 ;;
    2 | n2) echo n2 ;;
    *) fail 2 "there is no node '${1:-}'; nodes are 1 and 2" ;;
  esac
}

address_of() { # NODE
  echo "172.30.0.1${1#n}"
}

pods_of() { # NODE
  echo "10.244.${1#n}.0/24"
}

# Machines: cp, n1, n2. Each is a set of namespaces (mount, pid, net, uts, ipc, cgroup) and one cgroup
# in each hierarchy. All processes of a cluster are in cgroups with the name of the cluster. So `down`
# knows which processes it may kill, however `up` ended. Process ids alone may have been reused.

group_of() { # MACHINE, or 'relay', or 'up'
  echo "elasticdl.$cluster.$1"
}

# For `bash -c`: moves the shell into the cgroups named $0, then runs the command in $@.
# shellcheck disable=SC2016
join_groups='for procs in /sys/fs/cgroup/*/"$0"/cgroup.procs; do echo $$ >"$procs" || exit 1; done; exec "$@"'

# Daemons and commands in a machine do not inherit the caller's environment, because its proxy or
# PYTHONPATH would change the cluster.
clean_environment() {
  echo env -i "PATH=$programs:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" HOME=/root LANG=C.UTF-8
}

make_group() { # NAME [HIERARCHY...]
  local group=$1 hierarchy
  shift
  [ $# -gt 0 ] || set -- /sys/fs/cgroup/*/
  for hierarchy in "$@"; do
    mkdir -p "$hierarchy/$group"
  done
  # A new cpuset has no processors, and no process can join it.
  if [ -d "/sys/fs/cgroup/cpuset/$group" ]; then
    cat /sys/fs/cgroup/cpuset/cpuset.cpus >"/sys/fs/cgroup/cpuset/$group/cpuset.cpus"
    cat /sys/fs/cgroup/cpuset/cpuset.mems >"/sys/fs/cgroup/cpuset/$group/cpuset.mems"
  fi
}

processes_in() { # GROUP...
  local group
  for group in "$@"; do
    find /sys/fs/cgroup/*/"$group" -name cgroup.procs -exec cat {} + 2>/dev/null || true
  done | sort -nu
}

# Kills all processes in these cgroups and removes the cgroups that exist.
end_groups() { # GROUP...
  local group left attempt
  for ((attempt = 0; attempt < 100; attempt++)); do
    left=$(processes_in "$@")
    if [ -n "$left" ]; then
      # shellcheck disable=SC2086
      kill -KILL $left 2>/dev/null || true
    else
      for group in "$@"; do
        find /sys/fs/cgroup/*/"$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
      done
      left=$(cd /sys/fs/cgroup && for group in "$@"; do ls -d ./*/"$group" 2>/dev/null; done) || true
      [ -n "$left" ] || return 0
    fi
    sleep 0.1
  done
  echo "cluster: still running 10 s after SIGKILL: $left" >&2
  return 1
}

start_machine() { # MACHINE
  local machine=$1 outside
  # If cgroups of a crashed node were left, cAdvisor would spend 3 s on each container when the kubelet
  # starts again.
  end_groups "$(group_of "$machine")"
  make_group "$(group_of "$machine")"
  mkdir -p "$state/$machine"/{lib,log}
  rm -f "$state/$machine"/{ready,init.pid}
  # setsid, here and below, keeps the Ctrl-C of `up` from the daemons.
  # shellcheck disable=SC2046
  setsid bash -c "$join_groups" "$(group_of "$machine")" $(clean_environment) \
    unshare -C -m -u -i -n -p --fork --kill-child --mount-proc \
    bash "$parts/init.sh" "$machine" "$state" >>"$state/$machine/init.log" 2>&1 </dev/null &
  outside=$!
  wait_for 20 "machine $machine (see $state/$machine/init.log)" test -e "$state/$machine/ready" || return 1
  pgrep -P "$outside" >"$state/$machine/init.pid"
}

# The process id of the first process of a machine. Fails if the machine is off, even if the id was
# reused.
init_of() { # MACHINE
  local pid
  pid=$(cat "$state/$1/init.pid" 2>/dev/null) || return 1
  grep -qx "$pid" "/sys/fs/cgroup/pids/$(group_of "$1")/cgroup.procs" 2>/dev/null || return 1
  echo "$pid"
}

in_machine() { # MACHINE COMMAND...
  local machine=$1 init
  shift
  init=$(init_of "$machine") || fail 1 "machine $machine is off"
  # Joins the cgroups first, because nsenter does not change them.
  # shellcheck disable=SC2046
  bash -c "$join_groups" "$(group_of "$machine")" $(clean_environment) \
    nsenter -t "$init" -C -m -u -i -n -p -- "$@"
}

# Enters only the network namespace of a machine. Process ids are those of the host.
in_network() { # MACHINE COMMAND...
  local machine=$1 init
  shift
  init=$(init_of "$machine") || fail 1 "machine $machine is off"
  nsenter -t "$init" -n -- "$@"
}

# Starts a daemon. Its output is in MACHINE/PROGRAM.log.
start() { # MACHINE PROGRAM ARGUMENT...
  local machine=$1 program=$2 init
  shift
  init=$(init_of "$machine") || fail 1 "machine $machine is off"
  # shellcheck disable=SC2046
  setsid bash -c "$join_groups" "$(group_of "$machine")" $(clean_environment) \
    nsenter -t "$init" -C -m -u -i -n -p -- "$@" >>"$state/$machine/$program.log" 2>&1 </dev/null &
}

pid_of() { # MACHINE PROGRAM
  local pid
  for pid in $(cat "/sys/fs/cgroup/pids/$(group_of "$1")/cgroup.procs"); do
    if [ "$(basename "$(readlink "/proc/$pid/exe")" 2>/dev/null)" = "$2" ]; then
      echo "$pid"
      return
    fi
  done
  return 1
}

exec_in() {
  [ $# -ge 2 ] || fail 2 "usage: tools/cluster exec-in MACHINE COMMAND..."
  case " $machines " in
    *" $1 "*) in_machine "$@" ;;
    *) fail 2 "there is no machine '$1'; there are $machines" ;;
  esac
}

# The network: a bridge in cp with a link to each node. It has no route to the outside.
lay_bridge() {
  in_network cp sh -c "ip link add br0 type bridge && ip addr add $cluster_address/24 dev br0 && ip link set br0 up"
}

lay_cable() { # NODE
  local node=$1 other init
  init=$(init_of "$node")
  in_network cp sh -c "
    ip link add v$node type veth peer name e$node netns $init &&
    ip link set v$node master br0 up &&
    ip route replace $(pods_of "$node") via $(address_of "$node")"
  in_network "$node" sh -c "
    ip link set e$node name eth0 && ip addr add $(address_of "$node")/24 dev eth0 && ip link set eth0 up"
  for other in $nodes; do
    [ "$other" = "$node" ] || in_network "$node" ip route replace "$(pods_of "$other")" via "$(address_of "$other")"
  done
}

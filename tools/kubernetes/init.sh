# The first process of a machine: makes the mounts of the machine, then reaps orphans (the shims of
# containerd) until it is killed.
#   init.sh MACHINE STATE
set -euo pipefail
machine=$1 state=$2

hostname "$machine"
mount --make-rshared / # in this mount namespace only; the kubelet needs it

# Mounts the cgroups again, so that the root is the cgroup of this machine, and the kubelet does not see
# those of other nodes.
while read -r _ target type options _; do
  case $type:$target in
    cgroup:/sys/fs/cgroup/* | cgroup2:/sys/fs/cgroup/*) ;;
    *) continue ;;
  esac
  umount "$target"
  if [ "$type" = cgroup2 ]; then
    mount -t cgroup2 cgroup2 "$target"
  else
    options=$(tr , '\n' <<<"$options" | grep -vxE 'rw|ro|relatime|nosuid|nodev|noexec|xattr|release_agent=.*|clone_children' | paste -sd,)
    [[ $options != name=* ]] || options=none,$options
    mount -t cgroup -o "$options" cgroup "$target"
  fi
done < <(cat /proc/mounts)

mount -t tmpfs -o mode=755 tmpfs /run
mkdir -p /run/netns /run/lock
mount --bind "$state/$machine/lib" /var/lib
mount --bind "$state/$machine/log" /var/log
mount --bind "$state/resolv.conf" /etc/resolv.conf
mount --bind "$state/hosts" /etc/hosts
# The folder in which the controller manager creates volumes; its path is fixed in the code. All machines
# of the cluster share it, so a claim can be used on every node.
mount --bind "$state/volumes" /tmp/hostpath_pv

ip link set lo up
sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1

touch "$state/$machine/ready"
while :; do
  sleep 3600 &
  wait $!
done

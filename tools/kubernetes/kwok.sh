# Fake nodes, on which pods have the state Running without a process.

kwok() {
  local count=${1:-} taint='taints: [{key: kwok.x-k8s.io/node, value: fake, effect: NoSchedule}]'
  [[ $count =~ ^[1-9][0-9]*$ ]] || fail 2 "usage: tools/cluster kwok N [--schedulable]"
  case ${2:-} in
    '') ;;
    --schedulable) taint='taints: []' ;;
    *) fail 2 "usage: tools/cluster kwok N [--schedulable]" ;;
  esac
  pid_of cp kwok >/dev/null || start cp kwok --kubeconfig "$state/kubeconfig/admin.conf" \
    --config "$programs/kwok-stages.yaml" --manage-nodes-with-label-selector=type=kwok \
    --node-lease-duration-seconds=40 --cidr 10.200.0.0/16 --node-ip 172.30.0.99
  local i
  for ((i = 0; i < count; i++)); do
    cat <<YAML
apiVersion: v1
kind: Node
metadata:
  name: kwok-$i
  labels: {type: kwok, kubernetes.io/hostname: kwok-$i, kubernetes.io/os: linux}
  annotations: {kwok.x-k8s.io/node: fake}
spec: {$taint}
status:
  allocatable: {cpu: "32", memory: 256Gi, pods: "110"}
  capacity: {cpu: "32", memory: 256Gi, pods: "110"}
---
YAML
  done | kubectl apply -f - >/dev/null
  wait_for 60 "the fake nodes (see $state/cp/kwok.log)" fake_nodes_ready "$count" || exit 1
  say "$count fake nodes are ready"
}

fake_nodes_ready() { # COUNT
  [ "$(kubectl get nodes -l type=kwok --no-headers | grep -c ' Ready ')" -ge "$1" ]
}

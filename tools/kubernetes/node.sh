# The programs on a node.

start_containerd() { # NODE
  local node=$1 folder=$state/$1
  mkdir -p "$folder/cni" "$folder/certs.d/_default"
  # All names are pulled from the test registry, so nginx:1.7.9 and gcr.io/x/y:z need no change.
  cat >"$folder/certs.d/_default/hosts.toml" <<TOML
server = "http://registry.edl:5000"
[host."http://registry.edl:5000"]
  capabilities = ["pull", "resolve"]
TOML
  # Address leases are in /run, which is empty after a power cut.
  cat >"$folder/cni/10-edl.conflist" <<JSON
{"cniVersion": "0.4.0", "name": "edl", "plugins": [
 {"type": "bridge", "bridge": "cni0", "isGateway": true, "ipMasq": false, "hairpinMode": true,
  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$(pods_of "$node")"}]],
           "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "/run/cni-ipam"}},
 {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
  # restrict_oom_score_adj: otherwise no sandbox starts without CAP_SYS_RESOURCE.
  cat >"$folder/containerd.toml" <<TOML
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.edl:5000/pause:1"
  restrict_oom_score_adj = true
  tolerate_missing_hugetlb_controller = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$folder/cni"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "$folder/certs.d"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
TOML
  start "$node" containerd -c "$folder/containerd.toml"
}

# Waits for containerd: a kubelet that does not find it exits, and nothing starts it again.
start_kubelet() { # NODE
  local node=$1 folder=$state/$1 reserved
  wait_for 60 "containerd (see $folder/containerd.log)" in_machine "$node" ctr version || exit 1
  reserved=$(<"$state/reserved")
  cat >"$folder/kubelet.yaml" <<YAML
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
oomScoreAdj: 0
maxOpenFiles: 20000
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $state/pki/ca.crt}}
authorization: {mode: Webhook}
clusterDNS: [$cluster_address]
clusterDomain: cluster.local
resolvConf: $state/resolv.conf
systemReserved: {$reserved}
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%}
nodeStatusUpdateFrequency: 5s
nodeStatusReportFrequency: 10s
nodeLeaseDurationSeconds: 10
serializeImagePulls: false
volumePluginDir: /var/lib/kubelet/volumeplugins
logging: {verbosity: 2}
YAML
  start "$node" kubelet --config="$folder/kubelet.yaml" --kubeconfig="$state/kubeconfig/$node.conf" \
    --hostname-override="$node" --node-ip="$(address_of "$node")"
}

start_proxy() { # NODE
  cat >"$state/$1/proxy.yaml" <<YAML
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
oomScoreAdj: 0
hostnameOverride: $1
clusterCIDR: $pod_range
clientConnection: {kubeconfig: $state/kubeconfig/proxy.conf}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
iptables: {localhostNodePorts: false, minSyncPeriod: 200ms}
YAML
  start "$1" kube-proxy --config="$state/$1/proxy.yaml"
}

# Prints the resources that the kubelet must reserve so that a node offers exactly CPUS and MEMORY,
# on which tests depend. A node cannot offer more than the machine has.
reserve() { # CPUS MEMORY
  /usr/bin/python3 - "$1" "$2" "$(nproc)" <<'PYTHON'
import re, sys
def number(text, units, what):
    found = re.fullmatch(r'(\d+(?:\.\d+)?)(\D*)', text)
    if not found or found[2] not in units:
        sys.exit(f'cluster: {what} is {text!r}; use a number followed by one of {" ".join(units)}')
    return float(found[1]) * units[found[2]]
cpus = number(sys.argv[1], {'': 1000, 'm': 1}, '--node-cpu')
memory = number(sys.argv[2], {'Ki': 2**10, 'Mi': 2**20, 'Gi': 2**30}, '--node-memory')
has_cpus = int(sys.argv[3]) * 1000
has_memory = int(re.search(r'MemTotal: *(\d+)', open('/proc/meminfo').read())[1]) * 2**10
# The kubelet also reserves its eviction threshold.
memory = min(memory + 100 * 2**20, has_memory)
if cpus > has_cpus:
    sys.exit(f'cluster: --node-cpu {sys.argv[1]} is more than the {sys.argv[3]} CPUs of this machine')
print(f'cpu: {int(has_cpus - cpus)}m, memory: "{int(has_memory - memory)}"')
PYTHON
}

# Starts the programs of a node whose disk and network exist, also after a power cut.
start_node() { # NODE
  start_containerd "$1"
  start_kubelet "$1"
  start_proxy "$1"
}

node_ready() { # NODE
  [ "$(kubectl get node "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].status}')" = True ]
}

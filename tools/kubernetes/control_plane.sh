# The programs in machine cp, and the relays through which programs on the host reach them.

start_etcd() {
  start cp etcd --data-dir "$state/etcd" --unsafe-no-fsync --logger zap --log-level warn \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380
}

# There is no kube-proxy in cp, so the API server calls the pods of webhooks, not their services.
start_api_server() {
  local pki=$state/pki
  start cp kube-apiserver --etcd-servers=http://127.0.0.1:2379 \
    --advertise-address=$cluster_address --secure-port=6443 --service-cluster-ip-range=$service_range \
    --client-ca-file="$pki/ca.crt" --tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" \
    --kubelet-client-certificate="$pki/apiserver-kubelet-client.crt" \
    --kubelet-client-key="$pki/apiserver-kubelet-client.key" --kubelet-preferred-address-types=InternalIP \
    --service-account-issuer=https://kubernetes.default.svc.cluster.local \
    --service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
    --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
    --requestheader-client-ca-file="$pki/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client \
    --requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group \
    --requestheader-extra-headers-prefix=X-Remote-Extra- --enable-aggregator-routing=true \
    --proxy-client-cert-file="$pki/front-proxy-client.crt" --proxy-client-key-file="$pki/front-proxy-client.key"
}

# Call it when the API server is ready. Without it, the controller manager exits because a config map is
# missing, and nothing starts it again.
start_controllers() {
  local pki=$state/pki config=$state/kubeconfig/controller-manager.conf
  start cp kube-controller-manager --kubeconfig="$config" \
    --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" \
    --service-account-private-key-file="$pki/sa.key" --root-ca-file="$pki/ca.crt" \
    --cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" \
    --use-service-account-credentials --leader-elect=false --controller-start-interval=0s \
    --enable-hostpath-provisioner=true --node-monitor-grace-period=20s --node-monitor-period=2s
  config=$state/kubeconfig/scheduler.conf
  start cp kube-scheduler --kubeconfig="$config" \
    --authentication-kubeconfig="$config" --authorization-kubeconfig="$config" --leader-elect=false
}

start_dns() {
  cat >"$state/Corefile" <<CONF
.:53 {
  bind $cluster_address
  errors
  health 127.0.0.1:8081
  ready 127.0.0.1:8181
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $state/kubeconfig/admin.conf
    ttl 2
  }
  cache 2
}
CONF
  start cp coredns -conf "$state/Corefile"
}

# The registry writes to an overlay, so the storage that `build` filled does not change.
start_registry() {
  mkdir -p "$state/registry"/{root,upper,work}
  in_machine cp mount -t overlay overlay "$state/registry/root" \
    -o "lowerdir=$images/registry,upperdir=$state/registry/upper,workdir=$state/registry/work"
  registry_settings "$state/registry/root" "$cluster_address:5000" >"$state/registry.yml"
  start cp docker-registry serve "$state/registry.yml"
}

# The host has no route to the cluster. A relay connects a loopback port of the host to a port in cp,
# through a Unix socket. Without nodelay at both ends each request would take 20 ms longer.
start_relay() { # NAME ADDRESS_IN_CP
  local name=$1 address=$2 socket=$state/$1.sock port attempt
  start cp socat "UNIX-LISTEN:$socket,fork,mode=600" "TCP:$address,nodelay"
  wait_for 10 "the relay in cp" test -S "$socket" || return 1
  for ((attempt = 0; attempt < 5; attempt++)); do
    port=$(free_port)
    setsid bash -c "$join_groups" "$(group_of relay)" \
      socat "TCP-LISTEN:$port,bind=127.0.0.1,reuseaddr,fork,nodelay" "UNIX-CONNECT:$socket" \
      >>"$state/relay.log" 2>&1 </dev/null &
    # If another process has taken the port meanwhile, our socat has exited.
    if wait_for 5 "port $port" bash -c "</dev/tcp/127.0.0.1/$port" && kill -0 $! 2>/dev/null; then
      echo "$port" >"$state/$name.port"
      return
    fi
  done
  fail 1 "found no free port on the loopback interface for the relay of the $name"
}

free_port() {
  /usr/bin/python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

wait_for_api() { # SECONDS
  wait_for "$1" "the API server (see $state/cp/kube-apiserver.log)" kubectl get --raw /readyz
}

first_objects() {
  kubectl apply -f - >/dev/null <<'YAML'
# Gives kube-proxy read permissions.
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: elasticdl:node-proxier}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-proxier"}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: "system:kube-proxy"}]
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: standard
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/host-path
YAML
}

# Keys, certificates and kubeconfig files. Keys are elliptic curves, because RSA keys would add 2 s
# to `up`.

make_certificates() {
  local pki=$state/pki configs=$state/kubeconfig node
  mkdir -p "$pki" "$configs"
  # With openssl's default configuration every certificate would be an authority.
  printf '[req]\ndistinguished_name = dn\n[dn]\n' >"$pki/openssl.cnf"
  make_authority ca kubernetes-ca
  make_authority front-proxy-ca front-proxy-ca
  make_certificate ca apiserver /CN=kube-apiserver \
    "IP:127.0.0.1,IP:$cluster_address,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
  make_certificate ca apiserver-kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client
  make_certificate front-proxy-ca front-proxy-client /CN=front-proxy-client
  openssl genpkey -quiet -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out "$pki/sa.key"
  openssl pkey -in "$pki/sa.key" -pubout -out "$pki/sa.pub"

  make_kubeconfig admin /O=system:masters/CN=kubernetes-admin
  make_kubeconfig controller-manager /CN=system:kube-controller-manager
  make_kubeconfig scheduler /CN=system:kube-scheduler
  make_kubeconfig proxy /CN=system:kube-proxy
  for node in $nodes; do
    make_kubeconfig "$node" "/O=system:nodes/CN=system:node:$node"
  done
}

make_authority() { # FILE NAME
  make_key "$1" -subj "/CN=$2" -addext basicConstraints=critical,CA:TRUE \
    -addext keyUsage=critical,keyCertSign,digitalSignature
}

make_certificate() { # AUTHORITY FILE SUBJECT [NAMES]
  local pki=$state/pki names=()
  [ -z "${4:-}" ] || names=(-addext "subjectAltName=$4")
  make_key "$2" -subj "$3" -CA "$pki/$1.crt" -CAkey "$pki/$1.key" \
    -addext basicConstraints=critical,CA:FALSE -addext extendedKeyUsage=serverAuth,clientAuth "${names[@]}"
}

make_key() { # FILE ARGUMENT...
  local file=$state/pki/$1
  shift
  openssl req -config "$state/pki/openssl.cnf" -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
    -days 3650 -keyout "$file.key" -out "$file.crt" "$@" 2>"$file.log" || {
    cat "$file.log" >&2
    fail 1 "openssl could not make $file.crt"
  }
}

make_kubeconfig() { # FILE SUBJECT
  local pki=$state/pki
  make_certificate ca "client-$1" "$2"
  cat >"$state/kubeconfig/$1.conf" <<YAML
apiVersion: v1
kind: Config
clusters:
- name: elasticdl
  cluster:
    server: https://$cluster_address:6443
    certificate-authority-data: $(base64 -w0 "$pki/ca.crt")
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 "$pki/client-$1.crt")
    client-key-data: $(base64 -w0 "$pki/client-$1.key")
contexts:
- name: elasticdl
  context: {cluster: elasticdl, user: $1}
current-context: elasticdl
YAML
  chmod 600 "$state/kubeconfig/$1.conf"
}

# Compiles the cluster's programs from our pinned modules, into a cache that checkouts share.

kubernetes_version=v1.34.2

# Builds programs and images in parallel, because the images mostly wait for Debian's archive.
build() {
  local job jobs=()
  build_programs & jobs+=($!)
  # Images need mounts, and so root. Without root, only the programs are built, which take longer.
  if [ "$(id -u)" = 0 ]; then
    build_images & jobs+=($!)
  else
    say "the images are not built, because that needs root"
  fi
  for job in "${jobs[@]}"; do
    wait "$job" || fail 1 "the build failed"
  done
}

build_programs() {
  [ ! -d "$programs" ] || return 0
  local go
  go=$("$parts/find_go") || fail 1 "found no Go of the version in requirements/go.txt; install it with: tools/setup"
  mkdir -p "$cache"
  (
    flock -n 9 || { say "waiting for another build of the programs"; flock 9; }
    [ ! -d "$programs" ] || exit 0
    say "compiling Kubernetes $kubernetes_version, etcd, CoreDNS and kwok (once; about 15 minutes)"
    rm -rf "$cache/programs.new"
    mkdir -p "$cache/programs.new"
    export GOWORK=off GOTOOLCHAIN=local GOMODCACHE=$cache/go/mod GOCACHE=$cache/go/build
    # Without cgo, because none of these programs has C code of its own, and with equal flags, so
    # that shared packages are compiled once. Without DWARF, because they are not debugged.
    export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
    compile programs "$(version_flags)" tool ./coredns
    compile kwok "" tool
    mv "$cache/programs.new/server" "$cache/programs.new/etcd" # its package is etcd/server
    stages_of_kwok >"$cache/programs.new/kwok-stages.yaml"
    mv "$cache/programs.new" "$programs"
    say "compiled in $SECONDS s"
  ) 9>"$cache/programs.lock"
}

compile() { # MODULE LINKER_FLAGS PACKAGE...
  local module=$1 flags=$2
  shift 2
  (cd "$parts/$module" && nice -n 10 "$go" build -ldflags "-s -w $flags" -o "$cache/programs.new/" "$@")
}

# The kubelet rejects a control plane of version v0.0.0.
version_flags() {
  local package flags=
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    flags+=" -X $package.gitVersion=$kubernetes_version -X $package.gitMajor=1 -X $package.gitMinor=34"
    flags+=" -X $package.gitTreeState=clean -X $package.gitCommit=none"
  done
  echo "$flags"
}

# The behaviour of fake nodes and pods, from kwok's own module.
stages_of_kwok() {
  local folder file
  folder=$(cd "$parts/kwok" && "$go" list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
  for file in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
    pod/fast/pod-ready pod/fast/pod-complete pod/fast/pod-delete; do
    cat "$folder/$file.yaml"
    echo ---
  done
}

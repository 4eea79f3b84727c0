# Compiles programs of others that tests and benchmarks run beside ours. `build` does not need them.

peer_names="training-operator scheduler-plugins"

# Builds the named peers, by default all, and prints the folder that has a folder for each: the
# program, in crd.yaml the resource that it works with, and for the operator the manifests that install
# it and its examples for TensorFlow.
build_peers() { # [NAME...]
  local name go
  # shellcheck disable=SC2086
  [ $# -gt 0 ] || set -- $peer_names
  for name in "$@"; do
    [[ " $peer_names " == *" $name "* ]] || fail 2 "there is no peer '$name'; there are: $peer_names"
  done
  go=$("$parts/find_go") || fail 1 "found no Go of the version in requirements/go.txt; install it with: tools/setup"
  for name in "$@"; do
    build_peer "$name" >&2
  done
  echo "$peers"
}

build_peer() { # NAME
  local name=$1
  [ ! -d "$peers/$name" ] || return 0
  mkdir -p "$peers"
  (
    flock -n 9 || { say "waiting for another build of $name"; flock 9; }
    [ ! -d "$peers/$name" ] || exit 0
    say "compiling $name (once; a few minutes)"
    SECONDS=0
    rm -rf "$peers/$name.new"
    mkdir "$peers/$name.new"
    # The same settings as in build.sh, so that shared packages are compiled once. They are written
    # twice because a change of build.sh makes every machine compile Kubernetes again.
    export GOWORK=off GOTOOLCHAIN=local GOMODCACHE=$cache/go/mod GOCACHE=$cache/go/build
    export CGO_ENABLED=0 GOFLAGS="-mod=readonly -trimpath -buildvcs=false -gcflags=all=-dwarf=false"
    case $name in
      training-operator) compile_peer tool manager github.com/kubeflow/training-operator \
        manifests/base/crds/kubeflow.org_tfjobs.yaml
        cp -r --no-preserve=mode "$module_folder/manifests" "$module_folder/examples/tensorflow" \
          "$peers/$name.new/" ;;
      scheduler-plugins) compile_peer . scheduler sigs.k8s.io/scheduler-plugins \
        manifests/coscheduling/crd.yaml ;;
    esac
    mv "$peers/$name.new" "$peers/$name"
    say "compiled $name in $SECONDS s"
  ) 9>"$peers/$name.lock"
}

compile_peer() { # PACKAGE PROGRAM MODULE CRD
  local package=$1 program=$2 module=$3 crd=$4
  cd "$parts/$name"
  nice -n 10 "$go" build -ldflags "-s -w" -o "$peers/$name.new/" "$package"
  # Go names a program after its package.
  mv "$peers/$name.new"/* "$peers/$name.new/$program"
  module_folder=$("$go" list -m -f '{{.Dir}}' "$module")
  cp "$module_folder/$crd" "$peers/$name.new/crd.yaml"
}

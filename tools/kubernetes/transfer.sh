# Copies images to nodes and registries.

copy_containerd() { # NODE
  local to=$state/$1/lib/containerd database
  cp -al "$images/containerd" "$to"
  # Databases are written in place, so they are copied instead of linked.
  find "$to" -name '*.db' -print0 | while IFS= read -r -d '' database; do
    cp --remove-destination "$images/containerd/${database#"$to"/}" "$database"
  done
}

names_in() { # ARCHIVE
  /usr/bin/python3 - "$1" <<'PYTHON'
import json, sys, tarfile
with tarfile.open(sys.argv[1]) as archive:
    for image in json.load(archive.extractfile('manifest.json')):
        print('\n'.join(image['RepoTags'] or []))
PYTHON
}

# The path that a node requests from a registry when it pulls NAME: the name without its host.
path_in_registry() { # NAME
  local name=$1 host=${1%%/*}
  if [[ $name == */* && ($host == *.* || $host == *:* || $host == localhost) ]]; then
    name=${name#*/}
    [ "$host" = docker.io ] || { echo "$name"; return; }
  fi
  [[ $name == */* ]] || name=library/$name
  echo "$name"
}

copy_image() { # SOURCE REGISTRY NAME
  skopeo --insecure-policy copy --quiet --dest-tls-verify=false \
    "$1" "docker://$2/$(path_in_registry "$3")" </dev/null
}

# IMAGE in skopeo's syntax. IMAGE is an archive, an image of buildah's store, or already in that syntax.
source_of() { # IMAGE
  case $1 in
    docker-archive:* | oci-archive:* | oci:* | dir:* | containers-storage:*) echo "$1" ;;
    *.tar)
      [ -f "$1" ] || fail 1 "there is no archive $1"
      if tar -tf "$1" manifest.json >/dev/null 2>&1; then
        echo "docker-archive:$1"
      else
        echo "oci-archive:$1"
      fi ;;
    *) echo "containers-storage:$1" ;;
  esac
}

load() {
  [ $# -eq 1 ] || fail 2 "usage: tools/cluster load IMAGE (an archive, or a name in buildah's store)"
  need_programs skopeo
  local archive source node pid pids=()
  source=$(source_of "$1")
  if [[ $source == docker-archive:* || $source == oci-archive:* ]]; then
    archive=${source#*:}
  else
    archive=$state/load.$$.tar
    skopeo --insecure-policy copy --quiet "$source" "docker-archive:$archive:$1" ||
      fail 1 "cannot read image $1; 'buildah images' lists the images"
  fi
  # By standard input, because a node has its own /run and /var/lib.
  for node in $nodes; do
    in_machine "$node" ctr -n k8s.io images import - <"$archive" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || fail 1 "a node could not import $1"
  done
  rm -f "$state/load.$$.tar"
}

push() {
  [ $# -ge 1 ] && [ $# -le 2 ] || fail 2 "usage: tools/cluster push IMAGE [NAME]"
  need_programs skopeo
  local source name names
  source=$(source_of "$1")
  case $source in
    docker-archive:*) names=${2:-$(names_in "$1")} ;;
    containers-storage:*) names=${2:-$1} ;;
    *) names=${2:?cluster: the archive $1 has no name; usage: tools/cluster push IMAGE NAME} ;;
  esac
  for name in $names; do
    copy_image "$source" "127.0.0.1:$(<"$state/registry.port")" "$name" ||
      fail 1 "cannot push $1 as $name"
    say "pushed $name"
  done
}

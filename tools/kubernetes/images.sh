# The images that every cluster knows, stand-ins of ours. Their cache is named after this file.

# What a node has from the start, and the registry too:
#   pause          the first process of a pod
#   busybox        a shell and tar
#   nginx:1.7.9    the image of the tutorials' Deployment; serves a page
#   python:3.11    Debian 12 with python and pip, as Docker Hub's offers them; nothing of ours
image_date=1686355200 # 2023-06-10
build_images() {
  [ -d "$images" ] && return
  need_programs containerd ctr docker-registry skopeo mmdebstrap busybox
  mkdir -p "$cache"
  (
    flock -n 9 || { say "waiting for another build of images"; flock 9; }
    [ ! -d "$images" ] || exit 0
    say "making images (once; about 2 minutes)"
    local new=$cache/images.new
    rm -rf "$new"
    mkdir -p "$new/work"
    make_archives "$new/work"
    fill_registry "$new" "$new/work"
    fill_containerd "$new" "$new/work"
    mv "$new/work/archives/python.tar" "$new/" # for builders
    rm -rf "$new/work"
    mv "$new" "$images"
  ) 9>"$cache/images.lock"
}

make_archives() { # FOLDER
  local work=$1 tree=$1/tree layer="tar --sort=name --mtime=@$image_date --owner=0 --group=0 --numeric-owner"
  local archive="/usr/bin/python3 $parts/image_archive.py --created $image_date"
  mkdir -p "$tree"/{bin,sbin,dev,usr/bin,usr/sbin,etc,root,var/run} "$work/archives"
  mkdir -m 1777 "$tree/tmp"
  cp "$(command -v busybox)" "$tree/bin/busybox"
  ldd "$tree/bin/busybox" | grep -o '/[^ ]*' | grep -v "^$tree" | xargs cp -L --parents -t "$tree"
  chroot "$tree" /bin/busybox --install -s
  echo 'root:x:0:0:root:/root:/bin/sh' >"$tree/etc/passwd"
  echo 'root:x:0:' >"$tree/etc/group"
  $layer -C "$tree" -cf "$work/busybox.tar" .

  rm -rf "$tree"
  install -D "$parts/nginx" "$tree/usr/sbin/nginx"
  install -d "$tree/usr/share/nginx/html"
  echo '<h1>Welcome to nginx!</h1>' >"$tree/usr/share/nginx/html/index.html"
  $layer -C "$tree" -cf "$work/nginx.tar" .

  # Its date is a fixed one (that of Debian 12), also in the files that Python compiles: two makings
  # differ by Debian's updates only. pip may install, as it may on Docker Hub's image.
  TMPDIR=$work SOURCE_DATE_EPOCH=$image_date mmdebstrap --quiet --variant=minbase \
    --include=python3,python3-pip,python-is-python3,ca-certificates,iproute2,procps \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/lib/python3.11/EXTERNALLY-MANAGED' \
    bookworm "$work/python.tar" >"$work/mmdebstrap.log" 2>&1 </dev/null || {
    tail -20 "$work/mmdebstrap.log" >&2
    fail 1 "mmdebstrap could not make the python image; it needs Debian's archive, as apt does"
  }

  $archive "$work/archives/pause.tar" --name registry.edl:5000/pause:1 --layer "$work/busybox.tar" \
    --cmd /bin/sleep infinity
  $archive "$work/archives/busybox.tar" --name docker.io/library/busybox:1 \
    --name docker.io/library/busybox:latest --layer "$work/busybox.tar" --cmd sh
  $archive "$work/archives/nginx.tar" --name docker.io/library/nginx:1.7.9 \
    --name docker.io/library/nginx:latest --layer "$work/busybox.tar" --layer "$work/nginx.tar" --cmd nginx
  $archive "$work/archives/python.tar" --name docker.io/library/python:3.11 \
    --name docker.io/library/python:3.11-bookworm --layer "$work/python.tar" --cmd python3
}

# Storage of a registry that has the images: each cluster's registry starts on top of it.
fill_registry() { # OUT WORK
  registry_settings "$1/registry" 127.0.0.1:5000 >"$2/registry.yml"
  # A network of its own, where port 5000 is free; --kill-child ends the registry with the shell.
  unshare -n -p --fork --kill-child bash -c '
    set -euo pipefail
    . "$0/common.sh"; . "$0/transfer.sh"
    ip link set lo up
    docker-registry serve "$1/registry.yml" >"$1/registry.log" 2>&1 &
    wait_for 20 "the registry" bash -c "</dev/tcp/127.0.0.1/5000"
    for archive in "$1"/archives/*.tar; do
      for name in $(names_in "$archive"); do
        copy_image "docker-archive:$archive:$name" 127.0.0.1:5000 "$name"
      done
    done
  ' "$parts" "$2"
}

registry_settings() { # FOLDER ADDRESS
  cat <<YAML
version: 0.1
storage: {filesystem: {rootdirectory: $1}, delete: {enabled: true}}
http: {addr: "$2", relativeurls: true}
log: {level: warn}
YAML
}

# A containerd root with the images unpacked. A node's is made of hard links to it: what
# containers write is copied up by overlayfs, so nobody writes into these files.
fill_containerd() { # OUT WORK
  cat >"$2/containerd.toml" <<TOML
version = 2
root = "$1/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.tracing.processor.v1.otlp", "io.containerd.internal.v1.tracing"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "$1/containerd/opt"
TOML
  unshare -m -p --fork --kill-child --mount-proc bash -c '
    set -euo pipefail
    . "$0/common.sh"
    mount -t tmpfs tmpfs /run
    containerd -c "$1/containerd.toml" >"$1/containerd.log" 2>&1 &
    wait_for 20 "containerd" ctr version
    for archive in "$1"/archives/*.tar; do
      ctr -n k8s.io images import "$archive" >/dev/null
    done
    kill %1 # it closes its databases
    wait || true
  ' "$parts" "$2"
}

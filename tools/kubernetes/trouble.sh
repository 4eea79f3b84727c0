# Faults. Each verb returns when the fault is in place. Tests wait for the reaction of Kubernetes (a
# node is NotReady 20 s after it was disconnected).

node_down() { # NODE
  local node
  node=$(node_name "${1:-}")
  in_network cp ip link set "v$node" down
  say "the link of $node is down"
}

node_up() { # NODE
  local node
  node=$(node_name "${1:-}")
  in_network cp ip link set "v$node" up
  # The kernel drops a link's routes with the link.
  in_network cp ip route replace "$(pods_of "$node")" via "$(address_of "$node")"
  say "the link of $node is up"
}

node_off() { # NODE
  local node
  node=$(node_name "${1:-}")
  init_of "$node" >/dev/null || fail 1 "$node is already off"
  end_groups "$(group_of "$node")"
  say "$node is off"
}

node_on() { # NODE
  local node
  node=$(node_name "${1:-}")
  ! init_of "$node" >/dev/null || fail 1 "$node is already on"
  start_machine "$node" || exit 1
  lay_cable "$node"
  start_node "$node"
  say "$node is on"
}

api_kill() {
  local pid
  pid=$(pid_of cp kube-apiserver) || fail 1 "the API server is not running; start it with: tools/cluster api-start"
  kill -KILL "$pid"
  wait_for 10 "the end of the API server" test ! -e "/proc/$pid" || exit 1
  say "the API server is killed"
}

api_start() {
  ! pid_of cp kube-apiserver >/dev/null || fail 1 "the API server is already running"
  start_api_server
  wait_for_api 120 || exit 1
  say "the API server is ready"
}

# A request for an older revision is then answered with 410 Gone. A watch is answered from the API
# server's cache, so compact between api-kill and api-start.
compact() {
  in_machine cp /usr/bin/python3 -c '
import json, urllib.request
def call(path, **body):
    request = urllib.request.Request(f"http://127.0.0.1:2379/v3/{path}", json.dumps(body).encode())
    return json.load(urllib.request.urlopen(request, timeout=20))
revision = call("maintenance/status")["header"]["revision"]
call("kv/compaction", revision=revision, physical=True)
print(f"cluster: etcd is compacted to revision {revision}")'
}

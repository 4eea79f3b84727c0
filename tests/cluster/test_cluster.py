"""Tests of tools/cluster, on which the tests of the product rely."""

import json
import subprocess
import time

from cluster import ROOT, TOOL, nightly, pod, wait_for

NODES = ["n1", "n2"]


def conditions(found: dict) -> dict:
    return {each["type"]: each for each in found["status"].get("conditions", [])}


def node_is_ready(cluster, node: str) -> bool:
    found = json.loads(cluster("kubectl", "get", "node", node, "-o", "json"))
    return conditions(found)["Ready"]["status"] == "True"


def test_pods_run_on_both_nodes_and_say_how_they_ended(namespace):
    for node in NODES:
        namespace.apply(pod(f"ends-well-{node}", "hostname; exit 0", node=node),
                        pod(f"ends-ill-{node}", "exit 3", node=node))

    for node in NODES:
        assert namespace.wait_for_phase(f"ends-well-{node}", "Succeeded", "Failed") == "Succeeded"
        assert namespace.wait_for_phase(f"ends-ill-{node}", "Succeeded", "Failed") == "Failed"
        assert namespace.kubectl("logs", f"ends-well-{node}") == f"ends-well-{node}"
        state = namespace.get("pod", f"ends-ill-{node}")["status"]["containerStatuses"][0]["state"]
        assert state["terminated"]["exitCode"] == 3


def test_a_service_is_found_by_name_from_both_nodes(namespace, tmp_path):
    # Always: the image of the tutorials is pulled, even if the node has it.
    web = pod("web", image="nginx:1.7.9", node="n1", container={"imagePullPolicy": "Always"})
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
               "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
    page = tmp_path / "index.html"
    page.write_text("copied")

    namespace.apply(service, web)
    namespace.wait_for_phase("web", "Running")
    namespace.kubectl("cp", str(page), "web:/usr/share/nginx/html/index.html")
    ask = (f"until wget -qO- http://web.{namespace.name}.svc.cluster.local; do sleep 0.2; done;"
           " wget -qO- http://web")
    for node in NODES:
        namespace.apply(pod(f"ask-{node}", ask, node=node))

    for node in NODES:
        namespace.wait_for_phase(f"ask-{node}", "Succeeded", seconds=30)
        assert namespace.kubectl("logs", f"ask-{node}") == "copiedcopied"


def test_a_claim_is_shared_between_nodes(namespace):
    claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "shared"},
             "spec": {"accessModes": ["ReadWriteMany"],
                      "resources": {"requests": {"storage": "1Gi"}}}}
    volume = [{"name": "data", "persistentVolumeClaim": {"claimName": "shared"}}]
    mount = {"volumeMounts": [{"name": "data", "mountPath": "/data"}]}

    namespace.apply(claim, pod("writer", "echo from n1 >/data/note", node="n1", volumes=volume,
                               container=mount))
    namespace.apply(pod("reader", "until cat /data/note; do sleep 0.1; done 2>/dev/null", node="n2",
                        volumes=volume, container=mount))

    namespace.wait_for_phase("reader", "Succeeded")
    assert namespace.kubectl("logs", "reader") == "from n1"


def test_images_are_pushed_and_loaded_under_any_name(cluster, namespace, tmp_path):
    # Names that no earlier run has put on a node.
    loaded, pushed = f"example.com/loaded:{namespace.name}", f"gcr.io/some/where:{namespace.name}"
    archive = tmp_path / "image.tar"
    source = f"docker://{cluster('registry')}/library/busybox:1"
    subprocess.run(["skopeo", "--insecure-policy", "copy", "--quiet", "--src-tls-verify=false",
                    source, f"docker-archive:{archive}:{loaded}"], check=True)

    cluster("load", str(archive))
    cluster("push", str(archive), pushed)
    namespace.apply(pod("loaded", "true", image=loaded, node="n2",
                        container={"imagePullPolicy": "Never"}),
                    pod("pushed", "true", image=pushed, node="n2",
                        container={"imagePullPolicy": "Always"}))

    assert namespace.wait_for_phase("loaded", "Succeeded", "Failed") == "Succeeded"
    assert namespace.wait_for_phase("pushed", "Succeeded", "Failed") == "Succeeded"


def test_the_python_image_has_python_and_pip_and_no_library_of_ours(namespace):
    look = ("import glob, ssl, sqlite3, sys;"
            "print(sys.version_info[:2], glob.glob('/usr/lib/*/libgrpc*'))")
    namespace.apply(pod("python", f'pip --version >/dev/null && python -c "{look}"',
                        image="python:3.11"))

    namespace.wait_for_phase("python", "Succeeded")
    assert namespace.kubectl("logs", "python") == "(3, 11) []"


def test_a_pod_of_high_priority_takes_the_place_of_a_low_one(cluster, namespace):
    cluster("kubectl", "apply", "-f", str(ROOT / "elasticdl/manifests/priority-classes.yaml"))
    # A node has 2 CPUs: two of these fit on it, a third does not.
    low = [f"low-{i}" for i in range(4)]
    namespace.apply(*(pod(name, image="nginx:1.7.9", cpu="900m", priorityClassName="low")
                      for name in low))
    for name in low:
        namespace.wait_for_phase(name, "Running")

    namespace.apply(pod("high", image="nginx:1.7.9", cpu="900m", priorityClassName="high"))

    namespace.wait_for_phase("high", "Running")
    left = [name for name in low if namespace.phase(name) == "Running"]
    assert len(left) == 3
    events = namespace.kubectl("get", "events", "-o", "jsonpath={.items[*].reason}")
    assert "Preempted" in events


@nightly  # test_jobs.py covers it with a job
def test_a_node_is_lost_with_its_link_and_comes_back(cluster, namespace):
    namespace.apply(pod("there", "echo alive; sleep 600", node="n2"))
    namespace.wait_for_phase("there", "Running")

    cluster("node-down", "2")
    try:
        assert cluster.run("kubectl", "-n", namespace.name, "logs", "there",
                           "--request-timeout=2s").returncode != 0
        wait_for("n2 not ready", lambda: not node_is_ready(cluster, "n2"), 40)
        assert node_is_ready(cluster, "n1")
    finally:
        cluster("node-up", "2")

    wait_for("n2 ready", lambda: node_is_ready(cluster, "n2"), 30)
    assert namespace.kubectl("logs", "there") == "alive"


def test_a_node_boots_again_after_a_power_cut(cluster, namespace):
    namespace.apply(pod("there", "sleep 600", node="n1", restartPolicy="Always"))
    namespace.wait_for_phase("there", "Running")

    cluster("node-off", "1")
    assert cluster.run("exec-in", "n1", "true").returncode != 0
    cluster("node-on", "n1")

    def restarts():
        statuses = namespace.get("pod", "there")["status"].get("containerStatuses", [])
        return statuses and statuses[0]["restartCount"] == 1 and "running" in statuses[0]["state"]

    wait_for("the restart of the pod", restarts)


@nightly  # test_jobs.py covers it with a job
def test_the_api_server_forgets_old_revisions_and_nothing_else(cluster, namespace):
    namespace.kubectl("create", "configmap", "kept", "--from-literal=a=b")
    old = namespace.get("configmap", "kept")["metadata"]["resourceVersion"]
    namespace.kubectl("create", "configmap", "later")

    cluster("api-kill")
    assert cluster.run("kubectl", "get", "nodes", "--request-timeout=2s").returncode != 0
    cluster("compact")
    cluster("api-start")

    assert namespace.get("configmap", "kept")["data"] == {"a": "b"}
    gone = cluster.run("kubectl", "get", "--raw", f"/api/v1/namespaces/{namespace.name}/configmaps"
                       f"?resourceVersion={old}&resourceVersionMatch=Exact")
    assert gone.returncode != 0
    assert "compacted" in gone.stderr or "too old" in gone.stderr


def test_fake_nodes_run_fake_pods(cluster, namespace):
    cluster("kwok", "3")
    fakes = [pod(f"fake-{i}", image="no/such/image", nodeSelector={"type": "kwok"},
                 tolerations=[{"key": "kwok.x-k8s.io/node", "operator": "Exists"}])
             for i in range(20)]
    namespace.apply(*fakes)

    def running():
        return namespace.kubectl("get", "pods", "--field-selector=status.phase=Running",
                                 "-o", "name").count("fake-")

    try:
        wait_for("20 fake pods", lambda: running() == 20, 30)
    finally:
        cluster("kubectl", "delete", "nodes", "-l", "type=kwok")


def test_a_refusal_says_the_way_out(cluster):
    assert "tools/cluster --help" in cluster.run("frobnicate").stderr
    assert "nodes are 1 and 2" in cluster.run("node-down", "3").stderr
    without_root = subprocess.run(
        ["setpriv", "--reuid=65534", "--clear-groups", "env", "ELASTICDL_CACHE=/tmp/none",
         str(TOOL), "status"], capture_output=True, text=True, check=False)
    assert without_root.returncode == 77
    assert len(without_root.stderr.splitlines()) == 1


def test_status_names_nodes_pods_and_addresses(cluster, namespace):
    namespace.apply(pod("shown", "sleep 600"))
    started = time.monotonic()
    namespace.wait_for_phase("shown", "Running")
    assert time.monotonic() - started < 30

    shown = cluster("status")

    for word in ("https://127.0.0.1:", "registry", "n1", "n2", "shown"):
        assert word in shown

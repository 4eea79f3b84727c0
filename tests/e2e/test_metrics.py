"""A real Prometheus reads the metrics of a job and of a parameter server."""

import json
import os
import re
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import pytest
from harness import ROOT
from test_counting import start_counting
from waiting import wait_for

# What this job does not have: a model that is evaluated, a memory limit, an operator.
NOT_HERE = ("elasticdl_evaluation_metric", "elasticdl_process_memory_limit_bytes")


def get(address, path="/metrics", **headers):
    request = urllib.request.Request(f"http://{address}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read().decode()


class Prometheus:
    """Scrapes targets each second, with the rules of deploy/prometheus."""

    def __init__(self, folder, targets):
        """targets: [(address, token file or None)]."""
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                  "rule_files": [str(ROOT / "deploy/prometheus/elasticdl.rules.yml")],
                  "scrape_configs": [
                      {"job_name": f"target-{number}",
                       "static_configs": [{"targets": [address]}],
                       **({"authorization": {"credentials_file": str(token)}} if token else {})}
                      for number, (address, token) in enumerate(targets)]}
        (folder / "prometheus.yml").write_text(json.dumps(config))  # JSON is YAML
        self._log = folder / "prometheus.log"
        with open(self._log, "wb") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={folder}/prometheus.yml",
                 f"--storage.tsdb.path={folder}/prometheus", "--web.listen-address=127.0.0.1:0"],
                stdout=log, stderr=log)
        self.address = wait_for("the address of Prometheus", self._find_address)

    def _find_address(self):
        assert self.process.poll() is None, self._log.read_text()
        found = re.search(r"TLS is disabled.*address=(\S+)", self._log.read_text())
        return found and found[1]

    def query(self, expression):
        """[(labels, value)]."""
        text = get(self.address, "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        return [(each["metric"], float(each["value"][1]))
                for each in json.loads(text)["data"]["result"]]

    def value(self, expression):
        found = self.query(expression)
        return found[0][1] if found else None

    def close(self):
        self.process.terminate()
        self.process.wait(30)


@pytest.fixture
def prometheus(tmp_path):
    started = []

    def start_prometheus(*targets):
        started.append(Prometheus(tmp_path, targets))
        return started[-1]

    yield start_prometheus
    for each in started:
        each.close()


def check_lint(text):
    done = subprocess.run(["promtool", "check", "metrics"], input=text, text=True,
                          capture_output=True, timeout=30)
    assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr


def expressions():
    board = json.loads((ROOT / "deploy/grafana/elasticdl-jobs.json").read_text())
    for panel in board["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$job_name", ".*")


def test_prometheus_reads_a_job_whose_master_is_killed_and_a_parameter_server(
        start, start_ps, prometheus):
    ps, = start_ps(flags=["--http_port=0", "--job_name=count"])
    line = ps.process.stdout.readline()
    ps_address = "127.0.0.1:" + re.search(r"metrics on port (\d+)", line)[1]
    job = start_counting(start, "--num_minibatches_per_task=4", workers=2, servers=1,
                         size=200_000, epochs=10, batch_ms=5, metrics_every=20)
    address = wait_for("the HTTP address of the master",
                       lambda: (job.try_status() or {}).get("http_address"))
    token = job.folder / "token"

    with pytest.raises(urllib.error.HTTPError) as refused:
        get(address)
    assert refused.value.code == 401
    assert get(address, "/healthz") == "ok\n"
    authorization = {"Authorization": f"Bearer {token.read_text().strip()}"}
    check_lint(get(address, **authorization))
    check_lint(get(ps_address))
    open_metrics = get(address, Accept="application/openmetrics-text", **authorization)
    assert open_metrics.endswith("\n# EOF\n")

    server = prometheus((address, token), (ps_address, None))
    wait_for("both targets", lambda: server.value("sum(up)") == 2)
    done = 'elasticdl_dataset_records_done_total{job_name="count"}'
    before = wait_for("completed records", lambda: server.value(done))
    master = job.master_pid()
    os.kill(master, signal.SIGKILL)
    wait_for("the second master", lambda: server.value("elasticdl_master_starts_total") == 2)
    wait_for("more completed records", lambda: (server.value(done) or 0) > before)
    assert server.value(f"resets({done}[5m])") == 0, "the counter must survive the master"
    assert job.status()["http_address"] == address, "Prometheus must find the next master"

    for title, expression in expressions():
        if not any(name in expression for name in NOT_HERE):
            wait_for(f"data of the panel {title!r}: {expression}",
                     lambda expression=expression: server.query(expression), 90)
    assert server.value('elasticdl_replicas{role="worker",state="running"}') == 2
    assert server.value("elasticdl_ps_up") == 1


def test_metrics_are_open_or_off_if_the_user_wants_that(start):
    job = start_counting(start, "--metrics_without_token", workers=1, servers=1, size=100_000,
                         epochs=10)
    address = wait_for("the HTTP address of the master",
                       lambda: (job.try_status() or {}).get("http_address"))
    assert "elasticdl_job_info" in get(address)
    other = start_counting(start, "--master_http_port=-1", name="other", workers=1, servers=1,
                           size=100_000, epochs=10)
    wait_for("a running worker", lambda: other.running("worker"))
    assert other.status()["http_address"] == ""

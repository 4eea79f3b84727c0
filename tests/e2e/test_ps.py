"""`elasticdl ps` as a process: its output, its errors, and its HTTP port."""

import re
import signal
import subprocess
import urllib.error
import urllib.request

import pytest
from harness import BINARY


def get(port, path, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read().decode()


def test_it_serves_metrics_with_the_token_and_exits_after_sigterm(start_ps, tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    server, = start_ps(token_file=token, flags=["--http_port=0"])
    line = server.process.stdout.readline()
    http = re.fullmatch(r"elasticdl ps: metrics on port (\d+)\n", line)[1]
    assert get(http, "/healthz") == "ok\n"
    with pytest.raises(urllib.error.HTTPError) as refused:
        get(http, "/metrics")
    assert refused.value.code == 401
    text = get(http, "/metrics", "secret")
    assert 'elasticdl_ps_rows{index="0",lane="1"} 0' in text.splitlines()
    assert 'elasticdl_ps_push_seconds_count{index="0",lane="0"} 0' in text.splitlines()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(timeout=30) == 0


@pytest.mark.parametrize("flags, message", [
    (["--lanes=0"], "--lanes=0: the smallest allowed value is 1"),
    (["--lines=2"], "--lanes"),
    (["extra"], "unexpected argument 'extra'"),
    (["--host=0.0.0.0"], "--host=0.0.0.0 accepts connections from other machines"),
    (["--host="], "--insecure"),
    (["--checkpoint_root="], "--checkpoint_root needs a folder"),
    (["--index=2", "--servers=2"], "server 2 of 2: the index starts at 0"),
    (["--token_file=/nowhere/token"], "/nowhere/token"),
    (["--servers=600", "--lanes=2"], "600 servers of 2 lanes"),
    (["--servers=9223372036854775807", "--lanes=2"], "9223372036854775807 servers of 2 lanes"),
])
def test_invalid_flags_give_one_clear_line(flags, message):
    done = subprocess.run([BINARY, "ps", *flags], capture_output=True, text=True, timeout=30,
                          check=False)
    assert done.returncode != 0
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_an_error(start_ps):
    first, = start_ps()
    done = subprocess.run([BINARY, "ps", f"--port={first.port}"], capture_output=True, text=True,
                          timeout=30, check=False)
    assert done.returncode == 1
    assert str(first.port) in done.stderr

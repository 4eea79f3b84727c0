"""`elasticdl ps` as a process: what it prints, refuses, and tells on its HTTP port."""

import os
import re
import signal
import subprocess
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest
from harness import ROOT

ELASTICDL = os.environ.get("ELASTICDL_BIN", ROOT / "build/release/apps/elasticdl/elasticdl")


@contextmanager
def running_ps(*flags):
    with subprocess.Popen([ELASTICDL, "ps", "--http_port=0", *flags], stdout=subprocess.PIPE,
                          text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def line_of(process, pattern):
    line = process.stdout.readline()
    found = re.fullmatch(pattern, line.strip())
    assert found, line
    return found.groups()


def get(port, path, token=None):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return response.read().decode()


def test_it_says_its_ports_and_ends_when_told(tmp_path):
    token = tmp_path / "token"
    token.write_text("secret\n")
    with running_ps("--lanes=2", f"--token_file={token}") as process:
        line_of(process, r"elasticdl ps: listening on port (\d+) with 2 lanes")
        (http,) = line_of(process, r"elasticdl ps: metrics on port (\d+)")
        assert get(http, "/healthz") == "ok\n"
        with pytest.raises(urllib.error.HTTPError) as refused:
            get(http, "/metrics")
        assert refused.value.code == 401
        text = get(http, "/metrics", "secret")
        assert 'elasticdl_ps_rows{lane="1"} 0' in text.splitlines()
        assert 'elasticdl_ps_push_seconds_count{lane="0"} 0' in text.splitlines()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("flags, message", [
    (["--lanes=0"], "--lanes=0 is below 1"),
    (["--lines=2"], "--lanes"),
    (["--index=2", "--servers=2"], "server 2 of 2: they are counted from 0"),
    (["--token_file=/nowhere/token"], "/nowhere/token"),
    (["--servers=600", "--lanes=2"], "600 servers of 2 lanes"),
])
def test_bad_flags_get_one_clear_line(flags, message):
    done = subprocess.run([ELASTICDL, "ps", *flags], capture_output=True, text=True, timeout=30,
                          check=False)
    assert done.returncode != 0
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_port_that_is_taken_is_an_error():
    with running_ps() as first:
        (port,) = line_of(first, r"elasticdl ps: listening on port (\d+) with \d+ lanes")
        done = subprocess.run([ELASTICDL, "ps", f"--port={port}"], capture_output=True, text=True,
                              timeout=30, check=False)
    assert done.returncode == 1
    assert port in done.stderr

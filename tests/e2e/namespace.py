"""A network namespace for a job, in which connections can be cut without FIN or RST."""

import os
import subprocess
from pathlib import Path
from typing import Iterator, Set, Tuple

import pytest
from harness import BINARY


class Namespace:
    """A network namespace with a loopback device and packet filters. It affects only processes that
    run in it."""

    def __init__(self, folder: Path) -> None:
        self.name = f"elasticdl-test-{os.getpid()}"
        self._run("ip", "netns", "add", self.name)
        self.run("ip", "link", "set", "lo", "up")
        # Replaces the binary: runs it, and so all its children, in the namespace.
        self.binary = folder / "elasticdl-in-namespace"
        self.binary.write_text(f'#!/bin/sh\nexec ip netns exec {self.name} {BINARY} "$@"\n')
        self.binary.chmod(0o755)

    @staticmethod
    def _run(*command: str) -> str:
        done = subprocess.run(command, text=True, capture_output=True, timeout=30)
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def run(self, *command: str) -> str:
        return self._run("ip", "netns", "exec", self.name, *command)

    def connections_of(self, pid: int) -> Set[Tuple[int, int]]:
        """(local port, remote port) of each TCP connection of a process."""
        sockets = set()
        for entry in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(entry)
            except FileNotFoundError:
                continue
            if target.startswith("socket:["):
                sockets.add(target[len("socket:["):-1])
        found = set()
        for table in ("tcp", "tcp6"):
            for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
                fields = line.split()
                if fields[9] in sockets and fields[3] == "01":  # established
                    found.add((int(fields[1].rsplit(":", 1)[1], 16),
                               int(fields[2].rsplit(":", 1)[1], 16)))
        return found

    def cut(self, *match: str) -> None:
        """Drops packets that match. No connection is closed."""
        self.run("iptables", "-w", "-A", "INPUT", "-p", "tcp", *match, "-j", "DROP")

    def heal(self, *match: str) -> None:
        self.run("iptables", "-w", "-D", "INPUT", "-p", "tcp", *match, "-j", "DROP")

    def cut_connection(self, one: int, other: int) -> None:
        for source, target in ((one, other), (other, one)):
            self.cut("--sport", str(source), "--dport", str(target))

    def close(self) -> None:
        self._run("ip", "netns", "delete", self.name)


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[Namespace]:
    if os.geteuid() != 0:
        pytest.skip("only root can make a network namespace")
    made = Namespace(tmp_path)
    yield made
    made.close()



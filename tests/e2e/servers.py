"""Parameter servers as processes."""

import os
import re
import signal
import subprocess
import tempfile
import urllib.request
from collections import Counter
from pathlib import Path

from harness import BINARY


class Server:
    """An `elasticdl ps`. `kill` sends SIGKILL."""

    def __init__(self, index=0, servers=1, port=0, lanes=2, token_file=None,
                 flags=()):
        command = [BINARY, "ps", f"--port={port}", f"--lanes={lanes}", f"--index={index}",
                   f"--servers={servers}", f"--checkpoint_root={tempfile.gettempdir()}", *flags]
        if token_file:
            command.append(f"--token_file={token_file}")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        stdin=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        found = re.search(r"listening on port (\d+)", line)
        assert found, f"elasticdl ps printed {line!r}"
        self.port = int(found[1])
        self.address = f"127.0.0.1:{self.port}"
        self._http_port = None

    def metrics(self):
        """{name: sum over the lanes}. The server needs the flag --http_port=0."""
        if self._http_port is None:
            line = self.process.stdout.readline()
            self._http_port = int(re.search(r"metrics on port (\d+)", line)[1])
        with urllib.request.urlopen(f"http://127.0.0.1:{self._http_port}/metrics",
                                    timeout=30) as response:
            text = response.read().decode()
        sums = Counter()
        sample = r"^elasticdl_ps_(\w+)\{[^}]*lane=\"\d+\"\} (\S+)$"
        for name, value in re.findall(sample, text, re.M):
            sums[name] += float(value)
        return sums

    def most_resident_bytes(self):
        """The peak of its resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) * 1024

    def freeze(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)  # returns when all threads are stopped

    def thaw(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

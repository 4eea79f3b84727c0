"""Parameter servers as processes."""

import os
import re
import signal
import subprocess

from harness import BINARY


class Server:
    """An `elasticdl ps`, killed by `kill` as by the kernel."""

    def __init__(self, index=0, servers=1, port=0, token_file=None):
        command = [BINARY, "ps", f"--port={port}", "--lanes=2", f"--index={index}",
                   f"--servers={servers}"]
        if token_file:
            command.append(f"--token_file={token_file}")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True,
                                        stdin=subprocess.DEVNULL)
        line = self.process.stdout.readline()
        found = re.search(r"listening on port (\d+)", line)
        assert found, f"elasticdl ps says {line!r}"
        self.port = int(found[1])
        self.address = f"127.0.0.1:{self.port}"

    def freeze(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)  # until no thread of it runs

    def thaw(self):
        os.kill(self.process.pid, signal.SIGCONT)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdout.close()

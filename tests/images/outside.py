"""Local stand-ins for public registries.

In a mount namespace with its own /etc/hosts, docker.io and gcr.io resolve to a loopback address,
where a registry of the tests answers over TLS. A program in that namespace needs no other setting
than the certificate to trust.
"""

import contextlib
import os
import random
import shutil
import socket
import subprocess
from pathlib import Path
from typing import Dict, Iterator, List, Optional

from builder import ISOLATION
from waiting import wait_for

NAMES = ("gcr.io", "registry-1.docker.io", "docker.io")
CERTIFICATES = Path(os.environ.get("SSL_CERT_FILE", "/etc/ssl/certs/ca-certificates.crt"))


def wait_for_port(address: str, port: int, process: subprocess.Popen) -> None:
    def listens() -> bool:
        assert process.poll() is None, f"{process.args} ended with {process.returncode}"
        return subprocess.run(["socat", "-u", "/dev/null", f"TCP:{address}:{port}"], check=False,
                              capture_output=True).returncode == 0

    wait_for(f"{process.args[0]} to listen on {address}:{port}", listens, 20)


@contextlib.contextmanager
def running_registry(folder: Path, *settings: str) -> Iterator[str]:
    """HOST:PORT of an empty registry, which stores images in `folder`/storage."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    conf = folder / "registry.yml"
    conf.write_text("\n".join([
        "version: 0.1", "log: {level: error}", f'http: {{addr: "127.0.0.1:{port}"}}',
        f"storage: {{filesystem: {{rootdirectory: {folder}/storage}}}}", *settings]))
    with open(folder / "registry.log", "w") as log, subprocess.Popen(
            ["docker-registry", "serve", str(conf)], stdout=log, stderr=log) as process:
        try:
            wait_for_port("127.0.0.1", port, process)
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()


def without_tls(folder: Path, registry: str) -> Dict[str, str]:
    """Environment variables with which builders use that registry without TLS."""
    conf = folder / "registries.conf"
    conf.write_text(f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n')
    return {"CONTAINERS_REGISTRIES_CONF": str(conf)}


class Outside:
    """`registry`: HOST:PORT of the registry that answers, without TLS."""

    def __init__(self, folder: Path, registry: str) -> None:
        self.address = f"127.{random.randint(16, 250)}.{random.randint(1, 250)}.1"
        self.hosts = folder / "hosts"
        listed = "".join(f"{self.address} {name}\n" for name in NAMES)
        self.hosts.write_text(Path("/etc/hosts").read_text() + listed)
        self.make_certificate(folder)
        self.process = subprocess.Popen(
            ["socat", f"OPENSSL-LISTEN:443,bind={self.address},fork,reuseaddr,verify=0,"
             f"cert={folder / 'server.pem'}", f"TCP:{registry}"])
        wait_for_port(self.address, 443, self.process)

    def make_certificate(self, folder: Path) -> None:
        names = ",".join(f"DNS:{name}" for name in NAMES)
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
             "-nodes", "-days", "2", "-subj", "/CN=outside", "-addext", f"subjectAltName={names}",
             "-keyout", str(folder / "key.pem"), "-out", str(folder / "certificate.pem")],
            check=True, capture_output=True)
        certificate = (folder / "certificate.pem").read_text()
        (folder / "server.pem").write_text((folder / "key.pem").read_text() + certificate)
        # In addition to those of the host, because pip uses the real index.
        self.trusted = folder / "trusted.pem"
        self.trusted.write_text(CERTIFICATES.read_text() + certificate)

    def command(self, *words: str) -> List[str]:
        """The command, wrapped so that those names resolve to the stand-ins."""
        return ["unshare", "--mount", "--propagation=private", "sh", "-c",
                'mount --bind "$0" /etc/hosts && exec "$@"', str(self.hosts), *words]

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()


class Zoo:
    """A folder of models in which `elasticdl zoo` runs."""

    def __init__(self, folder: Path, binary: Path, storage: Path,
                 outside: Optional[Outside] = None) -> None:
        """`storage`: a storage.conf for buildah."""
        self.folder, self.binary, self.outside = folder, binary, outside
        self.env = {**os.environ, "CONTAINERS_STORAGE_CONF": str(storage), **ISOLATION}
        # Settings for the tools of this machine must not affect the test.
        for name in ("PIP_FIND_LINKS", "REQUESTS_CA_BUNDLE", "PIP_CERT", "CURL_CA_BUNDLE"):
            self.env.pop(name, None)
        if outside:
            self.env["SSL_CERT_FILE"] = str(outside.trusted)

    def run(self, *arguments: str, timeout: float = 600) -> subprocess.CompletedProcess:
        """Runs elasticdl; any exit code is allowed."""
        command = [str(self.binary), *arguments]
        if self.outside:
            command = self.outside.command(*command)
        return subprocess.run(command, cwd=self.folder, env=self.env, text=True, timeout=timeout,
                              capture_output=True, check=False)

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def layers(self, image: str) -> List[str]:
        """The digests of the layers of an image."""
        shown = subprocess.run(
            ["buildah", "inspect", "--type=image", "--format",
             "{{range .OCIv1.RootFS.DiffIDs}}{{.}} {{end}}", image],
            env=self.env, check=True, text=True, capture_output=True)
        return shown.stdout.split()

    def label(self, image: str, name: str) -> str:
        shown = subprocess.run(
            ["buildah", "inspect", "--type=image", "--format",
             f'{{{{index .OCIv1.Config.Labels "{name}"}}}}', image],
            env=self.env, check=True, text=True, capture_output=True)
        return shown.stdout.strip()


def store(folder: Path, kept: Path) -> Path:
    """A storage.conf for buildah that keeps images in `kept` across runs."""
    kept.mkdir(parents=True, exist_ok=True)
    conf = folder / "storage.conf"
    conf.write_text(f'[storage]\ndriver = "overlay"\ngraphroot = "{kept}"\n'
                    f'runroot = "{folder / "run"}"\n')
    return conf


def copy_zoo(root: Path, to: Path, requirements: Optional[str]) -> Path:
    """Copies the models of the tree, optionally with other `requirements`."""
    shutil.copytree(root / "model_zoo", to, ignore=shutil.ignore_patterns("__pycache__"))
    if requirements is not None:
        (to / "requirements.txt").write_text(requirements)
    return to

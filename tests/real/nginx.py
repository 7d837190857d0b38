"""nginx before a folder of HTML, with its own rate limit: started for a test, on a free port."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

CONFIG = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{ worker_connections 512; }}
http {{
    types {{ text/html html; text/css css; application/javascript js; text/plain txt py; }}
    default_type application/octet-stream;
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    limit_req_zone $binary_remote_addr zone=one:1m rate={rate}r/s;
    server {{
        listen 127.0.0.1:{port};
        root {root};
        limit_req zone=one burst={burst} nodelay;
        limit_req_status 429;
    }}
}}
"""


class Nginx:
    """`with Nginx(root, folder=tmp_path, rate=40, burst=10) as nginx:`; the log is read back with `log`."""

    def __init__(self, root: Path, *, folder: Path, rate: int, burst: int) -> None:
        self._root = root
        self._folder = folder
        self._rate = rate
        self._burst = burst
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def url(self, path: str) -> str:
        """A URL on this server."""
        return f"http://127.0.0.1:{self.port}/{path}"

    def __enter__(self) -> Self:
        for _ in range(5):  # somebody may take the free port before nginx does
            self.port = _free_port()
            if self._start():
                return self
        raise RuntimeError((self._folder / "error.log").read_text(errors="replace"))

    def _start(self) -> bool:
        config = self._folder / "nginx.conf"
        text = CONFIG.format(
            folder=self._folder,
            root=self._root,
            port=self.port,
            rate=self._rate,
            burst=self._burst,
        )
        if os.geteuid() == 0:
            text = "user root;\n" + text
        config.write_text(text, encoding="utf-8")
        self._process = subprocess.Popen(
            [executable(), "-c", str(config), "-p", str(self._folder)],
            stderr=subprocess.DEVNULL,
        )
        for _ in range(100):
            if self._process.poll() is not None:
                return False
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return True
            time.sleep(0.05)
        return False

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=10)

    def log(self) -> list[tuple[str, int]]:
        """Path and status of every request, in order."""
        lines = (self._folder / "access.log").read_text(encoding="utf-8").splitlines()
        parts = [line.split('"') for line in lines]
        return [(part[1].split()[1], int(part[2].split()[0])) for part in parts]


def executable() -> str:
    """Path of nginx; empty where it is not installed."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])

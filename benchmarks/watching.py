"""Who looks at a crawl: a terminal, a status page that polls each second, a Prometheus that scrapes each 5 s."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import threading
import tty
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

COLUMNS, ROWS = 120, 40
BROWSER = {
    "User-Agent": "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/148.0.0.0 Safari/537.36",
    "Accept": "*/*",
    "Accept-Encoding": "gzip, deflate, br, zstd",
    "Sec-Fetch-Dest": "empty",
    "Sec-Fetch-Mode": "cors",
    "Sec-Fetch-Site": "same-origin",
}


class Terminal(threading.Thread):
    """Reads what a program writes on a terminal, and finds the address of its status page."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._master, self.slave = pty.openpty()
        tty.setraw(self.slave)
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.url: str | None = None

    def run(self) -> None:
        seen = b""
        with suppress(OSError):  # the other end is closed
            while part := os.read(self._master, 65536):
                if self.url is None:
                    seen = (seen + part)[-100_000:]
                    found = re.search(rb"Status page: (http://\S+)", seen)
                    self.url = found[1].decode() if found else None

    def close(self) -> None:
        os.close(self.slave)
        self.join(10)
        os.close(self._master)


class Viewer(threading.Thread):
    """A page that polls each second, and a Prometheus that scrapes each 5 s; both keep their connections, as they do."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(daemon=True)
        self._terminal = terminal
        self._ended = threading.Event()
        self.polls = 0

    def run(self) -> None:
        while (url := self._terminal.url) is None:
            if self._ended.wait(0.1):
                return
        page, prometheus = (HTTPConnection(urlsplit(url).netloc, timeout=30) for _ in range(2))
        first = rows = -1
        while not self._ended.wait(1.0):
            with suppress(OSError, ValueError, HTTPException):
                get(page, "/status.json?span=3600")
                since = f"&since={rows}" if rows >= 0 else ""
                body, _ = get(page, "/domains.json?sort=left_s&dir=desc&limit=15" + since)
                found = re.search(rb'"seq":(\d+)', body)
                rows = int(found[1]) if found else -1
                body, headers = get(page, f"/history.f32?since={max(first, 0)}")
                width = len(headers["X-Series"].split(","))
                first = int(headers["X-First"]) + len(body) // 4 // width
                if self.polls % 5 == 0:
                    get(prometheus, "/metrics")
                self.polls += 1

    def stop(self) -> None:
        self._ended.set()
        self.join(40)


def get(connection: HTTPConnection, path: str) -> tuple[bytes, dict[str, str]]:
    """Body and headers of an answer of the crawl's own server."""
    connection.request("GET", path, headers=BROWSER)
    answer = connection.getresponse()
    return answer.read(), dict(answer.getheaders())

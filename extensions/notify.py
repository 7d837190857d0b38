"""Tells systemd that the crawl runs, how far it is, and that it lives.

The rule it keeps: without NOTIFY_SOCKET nothing happens; with it nothing can go wrong. The watchdog
is fed from the event loop, so a loop that hangs is ended and, with JOBDIR, resumed.
Source: sd_notify(3).
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from typing import TYPE_CHECKING

from .progress import status_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .snapshot import Snapshot

FEED_S = 5.0


class Notifier:
    """Sends what changes, at most once a second.

    Args:
        address: NOTIFY_SOCKET: a path, or a name in the abstract space that begins with ``@``.
        watchdog_s: Seconds after which systemd ends a silent process; 0: never.
    """

    def __init__(self, *, address: str, watchdog_s: float = 0.0) -> None:
        self._address = "\0" + address[1:] if address.startswith("@") else address
        self._feed_s = min(FEED_S, watchdog_s / 3) if watchdog_s > 0 else 0.0
        self._ready = False
        self._said = ""
        self._fed_due = 0.0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Notifier | None:
        """A notifier where systemd asks for one."""
        address = environment.get("NOTIFY_SOCKET")
        if not address:
            return None
        for_us = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        micros = environment.get("WATCHDOG_USEC", "0")
        return cls(
            address=address,
            watchdog_s=int(micros) / 1e6 if for_us and micros.isdecimal() else 0.0,
        )

    def show(self, snapshot: Snapshot) -> None:
        """Called with every snapshot."""
        now, words = time.monotonic(), []
        if not self._ready and (snapshot.account.asked or snapshot.running_s > FEED_S):
            self._ready = True
            words.append("READY=1")
        line = status_line(snapshot)
        if line != self._said:
            self._said = line
            words.append(f"STATUS={line}")
        if self._feed_s and now >= self._fed_due:
            self._fed_due = now + self._feed_s
            words.append("WATCHDOG=1")
        if words:
            self._send(words)

    def stopping(self) -> None:
        """The crawl ends."""
        self._send(["STOPPING=1"])

    def _send(self, words: list[str]) -> None:
        with (
            contextlib.suppress(OSError),
            socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as out,
        ):
            out.sendto("\n".join(words).encode(), self._address)

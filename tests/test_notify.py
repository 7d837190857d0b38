"""What systemd hears, over a real socket."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from extensions.book import Book
from extensions.notify import Notifier
from extensions.policy.bottleneck import Cause
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from tests.test_sampler import PlainView

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "notify"))
        listener.setblocking(False)
        yield listener


def sampler() -> Sampler:
    view = PlainView({"a.example": DomainNow(cause=Cause.PACE, pending=6)})
    book = Book()
    book.taken("a.example")
    return Sampler(view=view, book=book, spider="pages", job="")


def test_it_is_ready_says_how_far_it_is_and_feeds_the_watchdog(heard: socket.socket) -> None:
    """READY once, STATUS on change, WATCHDOG as often as asked."""
    environment = {"NOTIFY_SOCKET": str(heard.getsockname()), "WATCHDOG_USEC": "30000000"}
    notifier = Notifier.from_environment(environment)
    assert notifier is not None
    snapshot = sampler().tick()
    notifier.show(snapshot)
    first = heard.recv(4096).decode().splitlines()
    assert first[0] == "READY=1"
    assert first[1].startswith("STATUS=")
    assert "WATCHDOG=1" in first
    notifier.show(snapshot)
    with pytest.raises(BlockingIOError):
        heard.recv(4096)
    notifier.stopping()
    assert heard.recv(4096) == b"STOPPING=1"


def test_without_systemd_there_is_no_notifier() -> None:
    """Nothing to tell, nobody to tell."""
    assert Notifier.from_environment({}) is None


def test_a_socket_that_is_gone_is_no_trouble() -> None:
    """Telling must never end a crawl."""
    gone = {"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_PID": str(os.getpid() + 1)}
    notifier = Notifier.from_environment(gone)
    assert notifier is not None
    notifier.show(sampler().tick())

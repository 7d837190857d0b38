"""Lists of proxies that are not there, not whole, or too much: each is refused in one line that holds no credentials."""

from __future__ import annotations

import base64
import os
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import pytest_twisted

from extensions import proxylist
from extensions.config import Config
from extensions.proxylist import MAX_BYTES, BadProxyList, place_of, read, read_in_time
from tests.cases.tools import ListSpider
from tests.conftest import project_settings
from tests.proxies.tools import in_loop, later, trial

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def says(*pieces: bytes, every_s: float = 0.0) -> Iterator[tuple[int, list[bytes]]]:
    """A server that answers one connection with *pieces*; its port, and what it was asked."""
    asked: list[bytes] = []
    done = threading.Event()

    def serve() -> None:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            asked.append(connection.recv(65_536))
            for piece in pieces:
                try:
                    connection.sendall(piece)
                except OSError:
                    return
                if done.wait(every_s):
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1], asked
        finally:
            done.set()
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"\x00\xff nonsense\r\n\r\n", "BadStatusLine"),
        (b"HTTP/1.1 404 no\r\nContent-Length: 0\r\n\r\n", "answers 404"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n10.0.0.1:80\n10.0.0.2:31", "broke off"),
        (b"HTTP/1.1 200 OK\r\n\r\n" + b"10.0.0.1:3128\n" * (MAX_BYTES // 14 + 1), "larger than"),
        (b"", "RemoteDisconnected"),
    ],
)
def test_an_address_that_gives_no_whole_list_is_refused(answer, why):
    with (
        says(answer) as (port, _),
        pytest.raises(BadProxyList, match=why) as caught,
    ):
        read(place_of(f"http://us:geheim@127.0.0.1:{port}/list?token=geheim 2"))
    assert "geheim" not in str(caught.value)


def test_credentials_and_odd_characters_of_an_address_go_where_they_belong():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n10.0.0.1:80\n"
    with says(answer) as (port, asked):
        found, _ = read(place_of(f"http://us:ge%40heim@127.0.0.1:{port}/l%20ist?a=b c\u00e4"))
    assert [a.name for a in found] == ["10.0.0.1:80"]
    assert asked[0].startswith(b"GET /l%20ist?a=b%20c%C3%A4 HTTP/1.1\r\n")
    assert base64.b64encode(b"us:ge@heim") in asked[0]


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\n\r\n"])
@in_loop
async def test_one_that_trickles_holds_nobody_up(monkeypatch, head):
    monkeypatch.setattr(proxylist, "TIMEOUT_S", 0.3)
    with says(head, *[b"1"] * 300, every_s=0.1) as (port, _):
        began = time.monotonic()
        with pytest.raises(BadProxyList, match="not there whole"):
            await later(read_in_time(place_of(f"http://127.0.0.1:{port}/list")))
    assert time.monotonic() - began < 20.0  # of the 30 that it would take


@in_loop
async def test_a_pipe_that_nobody_writes_to_holds_nobody_up(monkeypatch, tmp_path):
    monkeypatch.setattr(proxylist, "TIMEOUT_S", 0.1)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadProxyList, match="not there whole"):
        await later(read_in_time(place_of(str(tmp_path / "pipe"))))
    os.close(os.open(tmp_path / "pipe", os.O_WRONLY))  # the thread may end


def test_a_file_that_is_too_large_is_refused_and_not_cut(tmp_path):
    path = tmp_path / "list"
    path.write_bytes(b"10.0.0.1:3128\n" * (MAX_BYTES // 14 + 1))
    with pytest.raises(BadProxyList, match="larger than 5,000,000 bytes"):
        read(place_of(str(path)))


def test_in_a_file_too_tls_needs_the_fast_handler(tmp_path):
    path = tmp_path / "list"
    path.write_text("https://u:geheim@h:1\nhttp://h:2\n")
    for fast, names in ((False, ["h:2"]), (True, ["h:1", "h:2"])):
        settings = project_settings(SLUICE_PROXIES=str(path), SLUICE_FAST_HANDLER=fast)
        place = Config.from_settings(settings).proxies
        assert place is not None
        assert [a.name for a in read(place)[0]] == names


@pytest_twisted.ensureDeferred
async def test_a_list_with_senseless_hosts_costs_no_page(crawl, site, tmp_path):
    path = tmp_path / "list"
    async with trial(1) as pool:
        path.write_bytes(
            f"[::1:80\n[zz]:80\na..b:80\nh\0:80\n{pool[0].place}\n".encode() + b"\xff\xfe:1"
        )
        result = await crawl(
            type("S", (ListSpider,), {"urls": tuple(site.urls(20))}), {"SLUICE_PROXIES": str(path)}
        )
    assert len(result.items) == 20
    assert result.stats["sluice/proxies"] == 1
    assert "Left out of" in " ".join(result.messages())

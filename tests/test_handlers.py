"""The fast download handler against a socket that says, byte for byte, what it is told to say."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from scrapy import Request, Spider, signals
from scrapy.exceptions import (
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    StopDownload,
)
from scrapy.utils.defer import deferred_f_from_coro_f
from scrapy.utils.test import get_crawler

from extensions.handlers import FastDownloadHandler

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
HANG_UP = b""


class Socket:
    """Answers the n-th request with the n-th of *answers*, the last one again and again.

    A connection ends after an empty answer, and after each answer if *hang_up* is set.
    """

    def __init__(self, answers: Sequence[bytes], *, hang_up: bool) -> None:
        self.heads: list[bytes] = []
        self.connections = 0
        self._answers = answers
        self._hang_up = hang_up
        self._writers: list[asyncio.StreamWriter] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        while True:
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                break
            answer = self._answers[min(len(self.heads), len(self._answers) - 1)]
            self.heads.append(head)
            writer.write(answer)
            if self._hang_up or answer == HANG_UP:
                break
        writer.close()

    def close(self) -> None:
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def served(*answers: bytes, hang_up: bool = False) -> AsyncIterator[tuple[Socket, str]]:
    """A socket with its script, and the start of its URLs."""
    script = Socket(answers, hang_up=hang_up)
    server = await asyncio.start_server(script.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield script, f"http://127.0.0.1:{port}"
    finally:
        server.close()
        script.close()
        await server.wait_closed()


@asynccontextmanager
async def handler(
    settings: dict[str, Any] | None = None, **receivers: Callable[..., Any]
) -> AsyncIterator[FastDownloadHandler]:
    """A handler whose crawler has these settings and these receivers of signals."""
    crawler = get_crawler(Spider, settings)
    for name, receiver in receivers.items():
        crawler.signals.connect(receiver, getattr(signals, name))
    made = FastDownloadHandler.from_crawler(crawler)
    try:
        yield made
    finally:
        await made.close()


def answer(body: bytes = b"ok", *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join([*lines, b"", body])


@deferred_f_from_coro_f
async def test_an_answer_says_all_that_scrapys_own_handler_says():
    """Status, every header, protocol, address and latency."""
    said = answer(
        b"<p>", b"Set-Cookie: a=1", b"set-cookie: b=2", b"Content-Type: text/html", status=b"404 x"
    )
    async with served(said) as (_, base), handler() as fast:
        request = Request(f"{base}/#part")
        response = await fast.download_request(request)
    assert (response.status, response.body, response.protocol) == (404, b"<p>", "HTTP/1.1")
    assert response.headers.getlist("Set-Cookie") == [b"a=1", b"b=2"]
    assert response.ip_address == ip_address("127.0.0.1")
    assert response.url == f"{base}/"
    assert type(response).__name__ == "HtmlResponse"
    assert request.meta["download_latency"] > 0


@deferred_f_from_coro_f
async def test_header_bytes_arrive_as_they_were_sent():
    """A latin-1 byte and a line of 30,000 bytes are ordinary for a crawler."""
    long_line = b"X-Long: " + b"y" * 30_000
    said = answer(b"ok", b"X-Name: caf\xe9", long_line, *(b"X-%d: 1" % n for n in range(300)))
    async with served(said) as (_, base), handler() as fast:
        response = await fast.download_request(Request(base))
    assert response.headers["X-Name"] == b"caf\xe9"
    assert len(response.headers["X-Long"]) == 30_000
    assert response.headers["X-299"] == b"1"


@deferred_f_from_coro_f
async def test_urls_are_sent_as_they_stand():
    """Neither escapes nor dots are rewritten."""
    async with served(OK) as (script, base), handler() as fast:
        for path in ("/%41/./a/../b?q=%7e&r=a+b%20c", "/a%2Fb"):
            await fast.download_request(Request(f"{base}{path}"))
    sent = [head.split()[1] for head in script.heads]
    assert sent == [b"/%41/./a/../b?q=%7e&r=a+b%20c", b"/a%2Fb"]


@deferred_f_from_coro_f
async def test_a_get_claims_no_length_and_a_post_does():
    """Some firewalls refuse a GET with a Content-Length."""
    async with served(OK) as (script, base), handler() as fast:
        await fast.download_request(Request(base))
        await fast.download_request(Request(base, method="POST"))
    assert b"content-length" not in script.heads[0].lower()
    assert b"Content-Length: 0\r\n" in script.heads[1]


@deferred_f_from_coro_f
async def test_nothing_is_added_to_the_headers():
    """What the middlewares chose is what is sent, latin-1 bytes included."""
    async with served(OK) as (script, base), handler() as fast:
        await fast.download_request(Request(base, headers={"X-A": ["1", "2"], "Cookie": "k=v"}))
        await fast.download_request(Request(base, headers={"X-Name": b"caf\xe9"}))
    names = [line.split(b":")[0] for line in script.heads[0].split(b"\r\n")[1:-2]]
    assert sorted(names) == [b"Cookie", b"Host", b"X-A", b"X-A"]
    assert b"X-Name: caf\xe9\r\n" in script.heads[1]


@deferred_f_from_coro_f
async def test_a_connection_that_died_idle_is_replaced():
    """Requests sent on a connection that its server had given up go out again."""
    async with served(OK, HANG_UP, OK) as (script, base), handler() as fast:
        await fast.download_request(Request(f"{base}/1"))
        response = await fast.download_request(Request(f"{base}/2"))
    assert response.body == b"ok"
    assert script.connections == 2
    assert [head.split()[1] for head in script.heads] == [b"/1", b"/2", b"/2"]


@deferred_f_from_coro_f
async def test_a_post_is_never_sent_twice():
    """It might have been obeyed."""
    async with served(OK, HANG_UP, OK) as (script, base), handler() as fast:
        await fast.download_request(Request(base))
        with pytest.raises(DownloadFailedError):
            await fast.download_request(Request(base, method="POST", body=b"x"))
    assert len(script.heads) == 2


@deferred_f_from_coro_f
async def test_a_server_that_hangs_up_is_asked_once():
    """Its failure belongs to the crawl's accounts: a retry is the retry middleware's to decide."""
    async with served(HANG_UP) as (script, base), handler() as fast:
        with pytest.raises(DownloadFailedError):
            await fast.download_request(Request(base))
    assert len(script.heads) == 1


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nX-Half: ",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ],
)
@deferred_f_from_coro_f
async def test_each_attempt_ends_at_its_own_timeout(said: bytes):
    """The request's own limit counts, not the setting, wherever the server stalls."""
    loop = asyncio.get_running_loop()
    async with served(said) as (_, base), handler({"DOWNLOAD_TIMEOUT": 180}) as fast:
        started = loop.time()
        with pytest.raises(DownloadTimeoutError, match=r"0\.2 seconds \([04] bytes of the body"):
            await fast.download_request(Request(base, meta={"download_timeout": 0.2}))
        assert loop.time() - started < 0.7


@deferred_f_from_coro_f
async def test_a_refused_connection_is_named_so():
    """Nobody listens on port 9 of this address."""
    async with handler() as fast:
        with pytest.raises(DownloadConnectionRefusedError):
            await fast.download_request(Request("http://127.0.0.1:9/"))


@pytest.mark.parametrize(
    "said",
    [
        answer(b"x" * 100),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n"
        + b"x" * 100
        + b"\r\n0\r\n\r\n",
    ],
)
@deferred_f_from_coro_f
async def test_a_body_over_the_limit_is_cut(said: bytes, caplog: pytest.LogCaptureFixture):
    """Whether its length was announced or not; the limit of the request goes first."""
    async with served(said) as (_, base), handler({"DOWNLOAD_MAXSIZE": 10}) as fast:
        with pytest.raises(DownloadCancelledError, match=r"download max size \(10\)"):
            await fast.download_request(Request(base))
        meta = {"download_maxsize": 0, "download_warnsize": 50}
        response = await fast.download_request(Request(base, meta=meta))
    assert len(response.body) == 100
    assert caplog.text.count("download warn size (50)") == 1


@deferred_f_from_coro_f
async def test_the_limit_does_not_apply_to_a_body_that_never_comes():
    """The answer to a HEAD gives the length of what a GET would bring."""
    said = b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"
    async with served(said) as (_, base), handler({"DOWNLOAD_MAXSIZE": 10}) as fast:
        response = await fast.download_request(Request(base, method="HEAD"))
    assert (response.status, response.body) == (200, b"")


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\nzz\r\n",
    ],
)
@deferred_f_from_coro_f
async def test_a_broken_body_is_lost_or_marked(said: bytes):
    """DOWNLOAD_FAIL_ON_DATALOSS decides, and the request's own word goes first."""
    async with served(said, hang_up=True) as (_, base), handler() as fast:
        with pytest.raises(ResponseDataLossError):
            await fast.download_request(Request(base))
        lenient = Request(base, meta={"download_fail_on_dataloss": False})
        response = await fast.download_request(lenient)
    assert (response.body, response.flags) == (b"half", ["dataloss"])


@deferred_f_from_coro_f
async def test_http_1_0_without_a_length_ends_with_its_connection():
    """The oldest servers still answer so."""
    said = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nall of it"
    async with served(said, hang_up=True) as (_, base), handler() as fast:
        response = await fast.download_request(Request(base))
    assert (response.protocol, response.body) == ("HTTP/1.0", b"all of it")


@deferred_f_from_coro_f
async def test_receivers_can_stop_a_download():
    """At the headers, or at the first bytes; failing or not, as they say."""

    def at_headers(headers: Any, body_length: int, request: Request, spider: Any) -> None:
        assert body_length == 2
        if request.url.endswith("/headers"):
            raise StopDownload(fail=False)

    def at_bytes(data: bytes, request: Request, spider: Any) -> None:
        assert data == b"ok"
        raise StopDownload

    receivers = {"headers_received": at_headers, "bytes_received": at_bytes}
    async with served(OK) as (_, base), handler(**receivers) as fast:
        response = await fast.download_request(Request(f"{base}/headers"))
        assert (response.body, response.flags) == (b"", ["download_stopped"])
        with pytest.raises(StopDownload) as caught:
            await fast.download_request(Request(f"{base}/bytes"))
    assert caught.value.response.body == b"ok"


@deferred_f_from_coro_f
async def test_a_plain_request_goes_whole_to_its_proxy():
    """With the whole URL and the credentials, and without a scheme if none was given."""
    async with served(OK) as (script, base), handler() as fast:
        response = await fast.download_request(
            Request(
                "http://a.test/x?y",
                headers={"Proxy-Authorization": "Basic dTpw"},
                meta={"proxy": base.removeprefix("http://")},
            )
        )
        await fast.download_request(Request(base, headers={"Proxy-Authorization": "Basic dTpw"}))
    assert response.body == b"ok"
    head = script.heads[0]
    assert head.startswith(b"GET http://a.test/x?y HTTP/1.1\r\n")
    assert b"Host: a.test\r\n" in head
    assert b"Proxy-Authorization: Basic dTpw\r\n" in head
    assert b"Proxy-Authorization" not in script.heads[1]


@deferred_f_from_coro_f
async def test_a_tunnel_is_asked_for_with_the_credentials():
    """And a proxy that refuses it is a failed download, not an odd server."""
    refusal = answer(b"", status=b"407 Proxy Authentication Required")
    async with served(refusal) as (script, base), handler() as fast:
        request = Request(
            "https://a.test/x",
            headers={"Proxy-Authorization": "Basic dTpw", "User-Agent": "crawler"},
            meta={"proxy": base},
        )
        with pytest.raises(DownloadFailedError, match="407"):
            await fast.download_request(request)
    assert len(script.heads) == 1
    assert script.heads[0].startswith(b"CONNECT a.test:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic dTpw\r\n" in script.heads[0]
    assert b"User-Agent: crawler\r\n" in script.heads[0]


@deferred_f_from_coro_f
async def test_what_aiohttp_cannot_parse_scrapys_handler_reads():
    """Once a host has shown itself odd, it is asked only once a request."""
    said = answer(b"ok", b"no colon in this line", b"X-After: 1")
    async with served(said) as (script, base), handler() as fast:
        first = await fast.download_request(Request(f"{base}/1"))
        second = await fast.download_request(Request(f"{base}/2"))
    assert (first.body, first.headers["X-After"], second.body) == (b"ok", b"1", b"ok")
    assert [head.split()[1] for head in script.heads] == [b"/1", b"/1", b"/2"]


@deferred_f_from_coro_f
async def test_a_request_may_choose_its_own_address():
    """Aiohttp binds a whole session only, so Scrapy's handler takes such requests."""
    async with served(OK) as (_, base), handler() as fast:
        request = Request(base, meta={"bindaddress": "127.0.0.2"})
        assert (await fast.download_request(request)).body == b"ok"

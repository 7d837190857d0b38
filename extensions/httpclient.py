"""An aiohttp session that neither rewrites, nor hides, nor asks twice.

aiohttp is made for clients of APIs; a crawler wants the wire as it is. Bytes of headers stay bytes,
URLs are sent as they stand, and header sizes have generous limits. aiohttp asks a second time
whenever a server hangs up without an answer, which would hide a failing server from the crawl's
own accounts; here only a *kept* connection is replaced, because its end says nothing of the server.
"""

from __future__ import annotations

import ssl
import weakref
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.client_exceptions import ClientConnectionResetError
from yarl import URL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from aiohttp.connector import Connection
    from multidict import CIMultiDict
    from yarl import URL as Url  # noqa: N811  # the name of a class, used as a type

MAX_HEADER_BYTES = 65_536  # one line; browsers stop at 256 KiB for all lines together
MAX_HEADERS = 512
_MAX_STALE = 8  # kept connections that one request may find dead before it gives up
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"})
_BARE = frozenset({"GET", "HEAD"})
_AUTO_HEADERS = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
_NEVER = aiohttp.ClientTimeout(total=None)  # the handler holds the only clock
_served: weakref.WeakSet[object] = weakref.WeakSet()  # connections that have carried an answer


class NoAnswerError(aiohttp.ClientError):
    """The server hung up before it had answered."""


class StaleConnectionError(NoAnswerError):
    """A kept connection was already closed when the request was sent on it."""


class Answer(aiohttp.ClientResponse):
    """A response that keeps what its connection knew, since small ones release it at once."""

    peer: str | None = None
    tls: ssl.SSLObject | None = None

    async def start(self, connection: Connection) -> aiohttp.ClientResponse:
        """Read the head of the answer, and tell a stale connection from a failing server.

        Raises:
            StaleConnectionError: the connection had served before and ended without a byte.
            NoAnswerError: a new connection ended before a whole head had come.
        """
        protocol, transport = connection.protocol, connection.transport
        kept = protocol in _served
        if transport is not None:
            peername = transport.get_extra_info("peername")
            self.peer = peername[0] if peername else None
            tls = transport.get_extra_info("ssl_object")
            self.tls = tls if isinstance(tls, ssl.SSLObject) else None
        try:
            started = await super().start(connection)
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            torn = not isinstance(getattr(error, "message", ""), str)  # part of a head arrived
            raise _ending(error, stale=kept and not torn) from error
        if not kept and protocol is not None:
            _served.add(protocol)
        return started


class PlainRequest(aiohttp.ClientRequest):
    """A request that goes out with the headers it was given.

    Without a body nothing has to be looked up for that; aiohttp would copy all headers first.
    """

    def update_auto_headers(self, skip_auto_headers: Iterable[str] | None) -> None:
        """Add nothing: neither an Accept nor a User-Agent of aiohttp's own."""
        if skip_auto_headers is not None:
            super().update_auto_headers(skip_auto_headers)


def _ending(error: Exception, *, stale: bool) -> NoAnswerError:
    return (StaleConnectionError if stale else NoAnswerError)(str(error) or type(error).__name__)


def open_session(
    *, tls: ssl.SSLContext, local_address: tuple[str, int] | None
) -> aiohttp.ClientSession:
    """A session without cookies, decoding, clocks or limits of its own; needs a running loop.

    It sets no limit on connections either: the downloader does, and a queue in here would count
    against the timeouts of the requests that wait in it.
    """
    connector = aiohttp.TCPConnector(
        ssl=tls, local_addr=local_address, limit=0, ttl_dns_cache=60, dns_cache_max_size=10_000
    )
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        request_class=PlainRequest,
        response_class=Answer,
        timeout=_NEVER,
        requote_redirect_url=False,
        max_line_size=MAX_HEADER_BYTES,
        max_field_size=MAX_HEADER_BYTES,
        max_headers=MAX_HEADERS,
    )


async def ask(
    session: aiohttp.ClientSession,
    method: str,
    url: str,
    *,
    headers: CIMultiDict[str],
    body: bytes,
    proxy: Url | None = None,
    proxy_headers: dict[str, str] | None = None,
) -> Answer:
    """Send one request and return its answer, the body still unread.

    Args:
        session: From `open_session`.
        method: In capitals.
        url: Sent byte for byte, less the fragment.
        headers: Every header that is to be sent, but for Host, Content-Length and Connection.
        body: May be empty; then nothing is sent and no length is claimed.
        proxy: Asked for plain URLs, and tunnelled through for ``https`` ones.
        proxy_headers: For the proxy alone, when it opens a tunnel.

    Raises:
        aiohttp.ClientError: no answer could be had, or none that HTTP knows.
    """
    target = URL(url, encoded=True)
    bare = not body and method in _BARE
    stale = 0
    while True:
        try:
            answer = await session.request(
                method,
                target,
                data=body or None,
                headers=headers,
                skip_auto_headers=None if bare else _AUTO_HEADERS,
                allow_redirects=False,
                proxy=proxy,
                proxy_headers=proxy_headers,
            )
        except (StaleConnectionError, ClientConnectionResetError):
            stale += 1
            if method not in _IDEMPOTENT or stale > _MAX_STALE:
                raise
        else:
            assert isinstance(answer, Answer)  # noqa: S101  # the session makes no other
            return answer

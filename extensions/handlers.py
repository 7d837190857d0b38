"""A faster download handler for ``http`` and ``https``, with Scrapy's own standing behind it.

The rule: what a spider sees must not depend on the handler. The common request goes through
aiohttp, whose parser is written in C; whatever aiohttp cannot do as Scrapy does it (an address to
bind to in ``meta``, header bytes outside UTF-8, an answer that its parser refuses) goes to the
handler that Scrapy would have used. Switch it on with::

    DOWNLOAD_HANDLERS = {
        "http": "extensions.handlers.FastDownloadHandler",
        "https": "extensions.handlers.FastDownloadHandler",
    }
"""

from __future__ import annotations

import asyncio
import errno
import logging
from collections import OrderedDict
from functools import lru_cache
from io import BytesIO
from ipaddress import IPv4Address, IPv6Address, ip_address
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

import aiohttp
from aiohttp.http_exceptions import PayloadEncodingError
from multidict import CIMultiDict
from pydispatch.dispatcher import getAllReceivers, liveReceivers
from scrapy import signals
from scrapy.core.downloader.handlers.base import BaseDownloadHandler
from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadCancelledError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    NotConfigured,
    ResponseDataLossError,
    StopDownload,
    UnsupportedURLSchemeError,
)
from scrapy.http import Headers
from scrapy.responsetypes import responsetypes
from scrapy.utils.asyncio import is_asyncio_available
from scrapy.utils.httpobj import urlparse_cached
from scrapy.utils.misc import build_from_crawler, load_object
from scrapy.utils.url import add_http_if_no_scheme
from twisted.internet.ssl import Certificate
from twisted.python.failure import Failure
from yarl import URL

from .httpclient import Answer, ask, open_session
from .tls import client_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

_log = logging.getLogger(__name__)

_DEFAULT_TIMEOUT_S = 10.0  # Scrapy's own, where neither setting nor meta gives one
_MAX_ODD_HOSTS = 1_000  # hosts remembered for answers that only Scrapy's parser reads
_BODILESS = frozenset({204, 304})


class _OddError(Exception):
    """A request or an answer that aiohttp would not have, but that Scrapy's handler may."""


class _Handler(Protocol):
    async def download_request(self, request: Request) -> Response: ...
    async def close(self) -> None: ...


class FastDownloadHandler(BaseDownloadHandler):
    """Scrapy's HTTP download semantics over aiohttp; built at the first request of its scheme."""

    lazy = True  # the session needs the running event loop

    def __init__(self, crawler: Crawler) -> None:
        if not is_asyncio_available():
            raise NotConfigured(f"{type(self).__name__} needs the asyncio reactor")
        super().__init__(crawler)
        settings = crawler.settings
        self._max_bytes = settings.getint("DOWNLOAD_MAXSIZE")
        self._warn_bytes = settings.getint("DOWNLOAD_WARNSIZE")
        self._fail_on_dataloss = settings.getbool("DOWNLOAD_FAIL_ON_DATALOSS")
        self._log_tls = settings.getbool("DOWNLOADER_CLIENT_TLS_VERBOSE_LOGGING")
        self._warned_of_dataloss = False
        bind = settings.get("DOWNLOAD_BIND_ADDRESS")
        self._session = open_session(
            tls=client_context(settings),
            local_address=(bind, 0) if isinstance(bind, str) else bind,
        )
        self._scrapys: dict[str, _Handler] = {}
        self._odd_hosts: OrderedDict[str, None] = OrderedDict()

    async def close(self) -> None:
        """Close every connection, kept ones included."""
        await self._session.close()
        for handler in self._scrapys.values():
            await handler.close()

    async def download_request(self, request: Request) -> Response:
        """Fetch *request* within its own timeout, counted from this call.

        Raises:
            DownloadTimeoutError: the whole answer was not here in time.
            DownloadCancelledError: it is larger than ``DOWNLOAD_MAXSIZE``.
            ResponseDataLossError: it broke off, and ``DOWNLOAD_FAIL_ON_DATALOSS`` is on.
            StopDownload: a handler of a signal wanted no more of it.
        """
        host = urlparse_cached(request).netloc
        headers = _text_headers(request)
        if headers is None or host in self._odd_hosts or request.meta.get("bindaddress"):
            return await self._leave_to_scrapy(request)
        timeout_s = request.meta.get("download_timeout") or _DEFAULT_TIMEOUT_S
        body = BytesIO()
        try:
            async with asyncio.timeout(timeout_s):
                return await self._fetch(request, headers, body)
        except TimeoutError as error:
            raise DownloadTimeoutError(
                f"Getting {request.url} took longer than {timeout_s} seconds"
                f" ({body.tell()} bytes of the body had come)."
            ) from error
        except _OddError as error:
            _log.debug("Leaving %s to Scrapy's handler: %s", host, error)
            self._remember_odd(host)
        return await self._leave_to_scrapy(request)

    async def _fetch(self, request: Request, headers: CIMultiDict[str], body: BytesIO) -> Response:
        proxy, proxy_headers = _proxy(request, headers)
        started_due = monotonic()
        try:
            answer = await ask(
                self._session,
                request.method,
                request.url,
                headers=headers,
                body=request.body,
                proxy=proxy,
                proxy_headers=proxy_headers,
            )
        except (aiohttp.ClientError, ValueError) as error:
            _refuse(error)
        async with answer:
            request.meta["download_latency"] = monotonic() - started_due
            return await self._read(request, answer, body)

    async def _read(self, request: Request, answer: Answer, body: BytesIO) -> Response:
        facts = _facts(request, answer)
        expected = _expected_bytes(request, answer)
        if self._log_tls:
            _log_tls_of(answer)
        stop = self._ask_receivers(
            signals.headers_received, request, headers=facts["headers"], body_length=expected
        )
        if stop:
            return _respond(facts, b"", stop=stop)
        sizes = _Sizes(request, max_bytes=self._max_bytes, warn_bytes=self._warn_bytes)
        sizes.check(expected or 0, "Expected to receive")
        try:
            async for chunk in answer.content.iter_any():
                body.write(chunk)
                stop = self._ask_receivers(signals.bytes_received, request, data=chunk)
                if stop:
                    return _respond(facts, body.getvalue(), stop=stop)
                sizes.check(body.tell(), "Received")
        except (aiohttp.ClientPayloadError, PayloadEncodingError) as error:
            self._lose_data(request, error)
            return _respond(facts, body.getvalue(), flags=["dataloss"])
        return _respond(facts, body.getvalue())

    def _ask_receivers(
        self, signal: object, request: Request, **details: Any
    ) -> StopDownload | None:
        """Send *signal*, and return the first receiver's wish to stop the download, if any.

        Nothing is sent where nobody listens, which is the common case and the cheaper one.
        """
        manager = self.crawler.signals
        if not any(True for _ in liveReceivers(getAllReceivers(manager.sender, signal))):
            return None
        results = manager.send_catch_log(
            signal, request=request, spider=self.crawler.spider, **details
        )
        for receiver, result in results:
            if isinstance(result, Failure) and isinstance(result.value, StopDownload):
                name = getattr(receiver, "__qualname__", receiver)
                _log.debug("Download stopped for %s from signal handler %s", request, name)
                return result.value
        return None

    def _lose_data(self, request: Request, error: Exception) -> None:
        """Raise for a body that broke off, unless its request or the settings put up with it."""
        if not request.meta.get("download_fail_on_dataloss", self._fail_on_dataloss):
            return
        if not self._warned_of_dataloss:
            self._warned_of_dataloss = True
            _log.warning(
                "Got data loss in %s. If you want to process broken responses set the setting"
                " DOWNLOAD_FAIL_ON_DATALOSS = False"
                " -- This message won't be shown in further requests",
                request.url,
            )
        raise ResponseDataLossError(str(error)) from error

    def _remember_odd(self, host: str) -> None:
        self._odd_hosts[host] = None
        if len(self._odd_hosts) > _MAX_ODD_HOSTS:
            self._odd_hosts.popitem(last=False)

    async def _leave_to_scrapy(self, request: Request) -> Response:
        scheme = urlparse_cached(request).scheme
        if scheme not in self._scrapys:
            path = self.crawler.settings["DOWNLOAD_HANDLERS_BASE"][scheme]
            self._scrapys[scheme] = build_from_crawler(load_object(path), self.crawler)
        return await self._scrapys[scheme].download_request(request)


class _Sizes:
    """The two limits on a body's size, each named in the log as Scrapy names it."""

    def __init__(self, request: Request, *, max_bytes: int, warn_bytes: int) -> None:
        self._request = request
        self._max_bytes = request.meta.get("download_maxsize", max_bytes)
        self._warn_bytes = request.meta.get("download_warnsize", warn_bytes)

    def check(self, size: int, verb: str) -> None:
        """Warn once of a large body.

        Raises:
            DownloadCancelledError: it is too large.
        """
        if self._max_bytes and size > self._max_bytes:
            message = self._message(size, self._max_bytes, "max", verb)
            _log.warning(message)
            raise DownloadCancelledError(message)
        if self._warn_bytes and size > self._warn_bytes:
            _log.warning(self._message(size, self._warn_bytes, "warn", verb))
            self._warn_bytes = 0

    def _message(self, size: int, limit: int, name: str, verb: str) -> str:
        return (
            f"{verb} {size} bytes which is larger than download {name} size ({limit})"
            f" in request {self._request}."
        )


def _text_headers(request: Request) -> CIMultiDict[str] | None:
    """The headers as aiohttp takes them; None where it could not send them as they are."""
    headers: CIMultiDict[str] = CIMultiDict()
    try:
        for name, values in request.headers.items():
            key = name.decode("ascii")
            for value in values:
                headers.add(key, value.decode())
    except UnicodeDecodeError:
        return None
    return headers


def _proxy(request: Request, headers: CIMultiDict[str]) -> tuple[URL | None, dict[str, str] | None]:
    """The proxy of *request*, and the headers that are for it alone.

    A plain request's Proxy-Authorization travels with it to the proxy. Through a tunnel it would
    reach the site, so there it is taken out of *headers* and sent with the CONNECT.
    """
    address = request.meta.get("proxy")
    if not address:
        headers.popall("Proxy-Authorization", None)
        return None, None
    proxy = URL(add_http_if_no_scheme(address))
    if urlparse_cached(request).scheme == "http":
        return proxy, None
    for_proxy = {}
    if agent := headers.get("User-Agent"):
        for_proxy["User-Agent"] = agent  # else aiohttp would introduce itself
    if credentials := headers.popall("Proxy-Authorization", None):
        for_proxy["Proxy-Authorization"] = credentials[-1]
    return proxy, for_proxy


def _refuse(error: aiohttp.ClientError | ValueError) -> NoReturn:
    """Raise *error* again by the name that Scrapy's retry and statistics know."""
    reason = str(error) or type(error).__name__
    if isinstance(error, aiohttp.InvalidURL | aiohttp.NonHttpUrlClientError):
        raise UnsupportedURLSchemeError(reason) from error
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        raise CannotResolveHostError(reason) from error
    if isinstance(error, aiohttp.ClientConnectorError):
        if error.errno == errno.ETIMEDOUT:
            raise DownloadTimeoutError(reason) from error
        if error.errno == errno.ECONNREFUSED:
            raise DownloadConnectionRefusedError(reason) from error
    elif isinstance(error, ValueError) or (
        isinstance(error, aiohttp.ClientResponseError)
        and not isinstance(error, aiohttp.ClientHttpProxyError)
    ):
        raise _OddError(reason) from error
    raise DownloadFailedError(reason) from error


def _facts(request: Request, answer: Answer) -> dict[str, Any]:
    """What every response to *request* says, however much of its body comes."""
    version = answer.version
    return {
        "url": request.url.partition("#")[0],
        "status": answer.status,
        "headers": Headers(answer.raw_headers),
        "certificate": _certificate(answer.tls.getpeercert(binary_form=True))
        if answer.tls
        else None,
        "ip_address": _address(answer.peer) if answer.peer else None,
        "protocol": f"HTTP/{version.major}.{version.minor}" if version else None,
    }


def _respond(
    facts: Mapping[str, Any],
    body: bytes,
    *,
    flags: list[str] | None = None,
    stop: StopDownload | None = None,
) -> Response:
    kind = responsetypes.from_args(headers=facts["headers"], url=facts["url"], body=body)
    response: Response = kind(**facts, body=body, flags=flags)
    if stop:
        response.flags.append("download_stopped")
        if stop.fail:
            stop.response = response
            raise stop
    return response


def _expected_bytes(request: Request, answer: Answer) -> int | None:
    """The length that the body will have, where the server says so and there is one."""
    if request.method == "HEAD" or answer.status in _BODILESS:
        return None
    return answer.content_length


@lru_cache(maxsize=1_024)
def _address(peer: str) -> IPv4Address | IPv6Address:
    return ip_address(peer)


@lru_cache(maxsize=1_024)
def _certificate(der: bytes | None) -> Certificate | None:
    return Certificate.load(der) if der else None


def _log_tls_of(answer: Answer) -> None:
    if answer.tls is None:
        return
    cipher = answer.tls.cipher()
    _log.debug(
        "SSL connection to %s using protocol %s, cipher %s",
        answer.tls.server_hostname,
        answer.tls.version(),
        cipher[0] if cipher else None,
    )

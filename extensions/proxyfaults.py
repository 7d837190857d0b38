"""Whose word a failure through a proxy is: the proxy's own, the host's, or nobody knows.

The rule it keeps: only what can come from nobody else is surely the proxy's (nobody listens there, it has no name, 407).
The rest is doubtful, and the pool weighs it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from scrapy.exceptions import CannotResolveHostError, DownloadConnectionRefusedError

from .policy.proxies import News

if TYPE_CHECKING:
    from scrapy.http import Response

UNWELCOME = 407
_GATEWAY = frozenset({502, 504})
_TUNNEL_STATUS = re.compile(r"'status': (\d{3})")
_PROXY_ERRORS = frozenset({"ClientProxyConnectionError"})


def news_of_response(response: Response, *, banned: bool, refused: bool) -> News:
    """What *response* says of the proxy that brought it."""
    if response.status == UNWELCOME:
        return News.PROXY
    if banned:
        return News.BANNED
    if refused:
        return News.REFUSED
    return News.BAD_GATEWAY if response.status in _GATEWAY else News.ANSWERED


def is_tunnel_error(exception: BaseException) -> bool:
    """Did the proxy refuse to open a tunnel? Scrapy's handlers have an exception class each for it."""
    return type(exception).__name__ in {"TunnelError", "ClientHttpProxyError"}


def news_of_exception(exception: BaseException) -> tuple[News, int | None]:
    """What a failure says of the proxy, and the status with which it refused a tunnel, if it did."""
    cause = exception if exception.__cause__ is None else exception.__cause__
    for error in (exception, cause):
        if is_tunnel_error(error):
            status = _tunnel_status(error)
            return News.PROXY if status == UNWELCOME else News.BAD_GATEWAY, status
    if any(_is_tls(error) for error in (exception, cause, *_reasons(cause))):
        return News.ANSWERED, None  # the tunnel stood: it is the host's
    if isinstance(exception, (CannotResolveHostError, DownloadConnectionRefusedError)):
        return News.PROXY, None
    if type(cause).__name__ in _PROXY_ERRORS:
        return News.PROXY, None
    return News.SILENCE, None


def _is_tls(error: BaseException) -> bool:
    """Is it a failure to agree on TLS, of whatever library?"""
    kind = type(error)
    return (
        kind.__module__ == "OpenSSL.SSL" or "SSL" in kind.__name__ or "Certificate" in kind.__name__
    )


def _reasons(error: BaseException) -> list[BaseException]:
    """What Twisted's ResponseFailed gathers."""
    return [failure.value for failure in getattr(error, "reasons", None) or () if failure.value]


def _tunnel_status(error: BaseException) -> int | None:
    status = getattr(error, "status", None)
    if isinstance(status, int):
        return status
    found = _TUNNEL_STATUS.search(str(error))
    return int(found[1]) if found else None

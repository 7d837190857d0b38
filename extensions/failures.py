"""Failures to get any answer: which are the network's, the host's or the page's, whatever library they come from."""

from __future__ import annotations

from scrapy.exceptions import (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
)
from twisted.internet.error import ConnectError, ConnectionClosed
from twisted.internet.error import TimeoutError as TwistedTimeout

NETWORK_FAILURES = (
    CannotResolveHostError,
    DownloadConnectionRefusedError,
    DownloadFailedError,
    DownloadTimeoutError,
    ResponseDataLossError,
    OSError,
    # Scrapy's own handler lets through what it has no name for: no route, network unreachable.
    ConnectError,
    ConnectionClosed,
)
"""They happened below HTTP."""

_UNCONNECTED = {"ClientConnectorError", "ClientConnectorDNSError", "ClientProxyConnectionError"}
"""aiohttp's, by name: importing it costs each start a tenth of a second. Those of TLS are others."""


def never_connected(exception: BaseException) -> bool:
    """Did the request surely not reach a host: no name, no route, no network, a port that is shut?

    A timeout may have been that too; nobody can tell.
    """
    if isinstance(exception, (CannotResolveHostError, DownloadConnectionRefusedError)):
        return True
    if isinstance(exception, DownloadTimeoutError):
        return False
    cause = exception.__cause__ or exception
    if isinstance(cause, ConnectError):
        return not isinstance(cause, TwistedTimeout)
    return type(cause).__name__ in _UNCONNECTED

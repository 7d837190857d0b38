"""What the choice of a proxy leaves on a request, and how it is taken off again.

The rule it keeps: what the pool has put there is told from what the user has put there, and only the former is taken off. No
credentials stand in a URL.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from . import names

if TYPE_CHECKING:
    from scrapy import Request

    from .policy.proxies.address import Address

JAR = "sluice session "


def put_on(request: Request, address: Address, *, encoding: str) -> None:
    """Send *request* through the proxy at *address*, whose credentials are encoded with *encoding*."""
    meta = request.meta
    meta["proxy"] = address.url
    meta[names.PROXY] = address.name
    if address.user is not None:
        # What HttpProxyMiddleware would make of credentials in the URL; this way none stand there.
        request.headers["Proxy-Authorization"] = _credentials(
            address.user, address.password, encoding
        )
        meta["_auth_proxy"] = address.url
    session = session_of(request)
    if session is not None and "cookiejar" not in meta:
        meta["cookiejar"] = f"{JAR}{session} {address.name}"


def _credentials(user: str, password: str | None, encoding: str) -> bytes:
    text = f"{user}:{password or ''}"
    try:
        encoded = text.encode(encoding)
    except UnicodeEncodeError:
        encoded = text.encode()
    return b"Basic " + base64.b64encode(encoded)


def session_of(request: Request) -> str | None:
    """The session that *request* keeps to."""
    session = request.meta.get(names.SESSION)
    return None if session is None else str(session)


def is_pools_choice(request: Request) -> bool:
    """Is the proxy of *request* one that the pool has put there?"""
    name = request.meta.get(names.PROXY)
    place = str(request.meta.get("proxy")).partition("://")[2]
    return isinstance(name, str) and place == name.partition("#")[0]


def strip(request: Request) -> None:
    """Take the pool's choice out of *request*, and nothing of the user's."""
    meta = request.meta
    if names.PROXY not in meta:
        return
    if is_pools_choice(request):
        del meta["proxy"]
        if meta.pop("_auth_proxy", None) is not None:
            request.headers.pop("Proxy-Authorization", None)
    del meta[names.PROXY]
    if str(meta.get("cookiejar")).startswith(JAR):
        del meta["cookiejar"]

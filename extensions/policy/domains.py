"""The politeness key of a URL: whom a request burdens."""

from __future__ import annotations

from functools import lru_cache
from urllib.parse import urlsplit

_DEFAULT_PORTS = {"http": 80, "https": 443, "ftp": 21}


@lru_cache(maxsize=4096)
def _netloc_key(scheme: str, netloc: str) -> str:
    host = netloc.rpartition("@")[2].lower()
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return host
    if port is None or port == _DEFAULT_PORTS.get(scheme):
        return name
    return f"{name}:{port}"


def domain_key(url: str) -> str:
    """Host of *url* in lower case, with the port where it is not the scheme's own; empty where there is no host."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return ""
    end = len(rest)
    for mark in "/?#":
        at = rest.find(mark, 0, end)
        if at >= 0:
            end = at
    return _netloc_key(scheme.lower(), rest[:end])

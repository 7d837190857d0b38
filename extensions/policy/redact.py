"""URLs fit for a log, a page or a dead letter."""

from __future__ import annotations


def redact_url(url: str) -> str:
    """*url* without user name and password."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    end = min((at for at in (rest.find(mark) for mark in "/?#") if at >= 0), default=len(rest))
    host = rest[:end].rpartition("@")[2]
    return f"{scheme}://{host}{rest[end:]}"

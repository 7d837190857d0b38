"""The words between the crawl and the pool: how a ride ended, and who answers for it."""

from __future__ import annotations

import enum


class LimitBy(enum.Enum):
    """Whose limits hold a domain's requests back."""

    TARGET = "target"  # what the host takes from all proxies together
    PROXY = "proxy"  # what the host takes through each proxy by itself
    BOTH = "both"  # the host's own limit, and what each proxy carries


class News(enum.Enum):
    """How a request through a proxy ended."""

    ANSWERED = "answered"  # the host answered, whatever the status
    BANNED = "banned"  # a ban page: the host has had enough of this proxy
    REFUSED = "refused"  # 429, or 503 with Retry-After
    PROXY = "proxy"  # surely the proxy's fault: nobody listens, 407, no such proxy
    BAD_GATEWAY = (
        "bad_gateway"  # 502 or 504: the proxy's word that it got nothing, or the host's own
    )
    SILENCE = "silence"  # a timeout, a reset: somewhere between here and the host


class Charge(enum.Enum):
    """Who answers for it."""

    NOBODY = "nobody"  # a good answer
    PROXY = "proxy"  # the request goes again through another one, and has spent nothing
    PAIR = "pair"  # the same; the proxy stays good for other domains
    TARGET = "target"  # the host or the page itself: as it would be without proxies

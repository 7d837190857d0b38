"""Why a domain with waiting requests sends none, for the status page and the logs."""

from __future__ import annotations

import enum


class Blocked(enum.Enum):
    """What holds a domain back right now."""

    NONE = "none"
    PACE = "pace"  # the host's rate limit, as found
    CONCURRENCY = "concurrency"  # the host's capacity, as found
    CEILING = "ceiling"  # the project's own CONCURRENT_REQUESTS_PER_DOMAIN
    HOLD = "hold"  # after a refusal or failures
    PARK = "park"  # the host asked for a long wait
    PROBE = "probe"  # one request is asking for all
    DOWN = "down"  # the host gave no answer for a while
    CRAWL_DELAY = "crawl_delay"  # robots.txt
    USER_DELAY = "user_delay"  # DOWNLOAD_DELAY

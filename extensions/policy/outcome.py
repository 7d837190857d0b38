"""What an answer says about the server's capacity: the words between crawl and control law."""

from __future__ import annotations

import enum


class Outcome(enum.Enum):
    """How one request ended, seen from the host's capacity."""

    SUCCESS = (
        "success"  # an honest answer: lets pace and concurrency grow while they are really used
    )
    REFUSED = "refused"  # 429, 503 with Retry-After, ban page: moves the pace
    OVERLOADED = (
        "overloaded"  # timeout, reset, refused connection, 502, 503, 504: moves the concurrency
    )
    IGNORED = "ignored"  # cached, redirect, 404 and other client errors: says nothing of capacity

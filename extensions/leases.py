"""Requests that were handed out and have not ended: what each did so far, and how it ended.

The rule it keeps: every lease ends as exactly one of `Ending`'s kinds, decided in one place (`ending_of`) from what was
seen: the failure that reached the errback, an error in a callback, a response, a replacement.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from scrapy.exceptions import IgnoreRequest
from scrapy.spidermiddlewares.httperror import HttpError

from .bans import Banned

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy import Request
    from twisted.python.failure import Failure

    from .domains import Domain
    from .policy.frontier import Entry
    from .policy.outcome import Outcome
    from .policy.proxies import Ride
    from .policy.ticket import Ticket
    from .stores.base import DeadLetter, StagedItem


class Ending(enum.Enum):
    """How a leased request ended. Together with duplicates these add up to all that was asked."""

    PARSED = "parsed"  # its callback ran to its end
    REPLACED = "replaced"  # by a retry or a redirect, which goes on in its place
    SKIPPED = "skipped"  # meant: robots.txt, off site, ignored by a middleware
    DEAD = "dead"  # lost unless replayed


class Lease:
    """One request that was handed out. Written by the scheduler and the middlewares, read when it ends."""

    __slots__ = (
        "banned",
        "children",
        "crashes",
        "cut",
        "domain",
        "entry",
        "error",
        "failure",
        "flying",
        "handled",
        "has_children",
        "held_on_disk",
        "items",
        "letters",
        "outcome",
        "proxy",
        "request",
        "responded",
        "ride",
        "sent_due",
        "spared",
        "ticket",
    )

    def __init__(self, *, entry: Entry, request: Request, domain: Domain, now: float) -> None:
        self.entry = entry
        self.request = request
        self.domain = domain
        self.sent_due = now
        self.ticket: Ticket | None = None
        self.outcome: Outcome | None = None
        self.ride: Ride | None = None  # on a proxy of the pool, until that is told how it ended
        self.proxy: str | None = None  # which proxy that was
        self.spared: str | None = None  # what its proxy failed in: the request has spent nothing
        self.flying = True  # in the downloader's hands
        self.responded = False  # a response left the downloader middlewares
        self.failure: Failure | None = None  # what reached the errback
        self.handled = False  # the spider's errback took it
        self.error: Failure | None = None  # raised by a callback, an errback or their output
        self.has_children = False
        self.children: list[
            Entry
        ] = []  # unfilterable ones: they wait for this lease's acknowledgement
        self.held_on_disk: dict[str, list[int]] = {}  # domain -> count, best priority, best rank
        self.items: list[StagedItem] = []
        self.letters: list[DeadLetter] = []  # of its items
        self.banned: str | None = None  # why its answer is a ban page
        self.crashes = entry.crashes
        self.cut = False  # the rest of its output was left out, since the crawl stops

    @property
    def id(self) -> int:
        """The id of its row."""
        return self.entry.id

    def ending(self) -> Ending:
        """How it ended; asked once, when neither downloader nor scraper has it any more."""
        if self.failure is not None and is_meant(self.failure):
            # A spider middleware's IgnoreRequest is told as an error of the spider too: still it was meant.
            again = self.error is None or self.error.value is self.failure.value
            return Ending.SKIPPED if again else Ending.DEAD
        if self.error is not None or self.failure is not None:
            return Ending.DEAD
        if self.responded:
            return Ending.PARSED
        if self.has_children:
            return Ending.REPLACED
        return Ending.DEAD


class ErrbackRecorder:
    """Stands in for a request's errback while it is out, and sees what no signal tells: why it failed.

    Scrapy calls the errback for every download failure, also for `IgnoreRequest` raised by any middleware. The user's own
    errback, if any, is called as always, and what it raises or returns is passed on.
    """

    __slots__ = ("_lease", "inner")

    def __init__(self, lease: Lease, inner: Callable[[Failure], Any] | None) -> None:
        self._lease = lease
        self.inner = inner

    def __call__(self, failure: Failure) -> Any:
        """Record, put the user's errback back, and do what it does; re-raise where there is none."""
        self._lease.failure = failure
        self._lease.request.errback = self.inner
        if self.inner is None:
            failure.raiseException()
        output = self.inner(failure)
        self._lease.handled = output is not failure
        return output


def is_meant(failure: Failure) -> bool:
    """Was the request left out on purpose (robots.txt, off site, a middleware's IgnoreRequest), not lost?

    `HttpError` and an endless redirect are IgnoreRequest too, but nobody wanted them.
    """
    if not isinstance(failure.value, IgnoreRequest) or isinstance(
        failure.value, (HttpError, Banned)
    ):
        return False
    text = str(failure.value)
    return "redirections" not in text and "DOWNLOAD_" not in text

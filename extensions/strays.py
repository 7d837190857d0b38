"""Requests that never meet the scheduler: robots.txt, media pipelines, `engine.download_async` in callbacks.

The rule it keeps: a host's limits hold for all that is sent to it. A stray waits for its host's governor without holding
one of the crawl's places, goes before the host's pages (a page waits for it), and its answer teaches the governor.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from scrapy.exceptions import IgnoreRequest

from . import names
from .intake import seconds
from .policy.domains import domain_key

if TYPE_CHECKING:
    from scrapy import Request

    from .control import Control
    from .domains import Domain
    from .policy.outcome import Outcome
    from .policy.proxies import Ride
    from .policy.ticket import Ticket

LOOK_AGAIN_S = 0.05
"""Longest sleep of a waiting stray: what ends its wait (an answer of the host) may come at any time."""


class Stray:
    """One request on its own way. Stands where a `Lease` stands for scheduled ones."""

    __slots__ = ("banned", "domain", "outcome", "proxy", "ride", "sent_due", "spared", "ticket")

    def __init__(self, *, domain: Domain, now: float) -> None:
        self.domain = domain
        self.ticket: Ticket | None = None
        self.ride: Ride | None = None
        self.proxy: str | None = None
        self.spared: str | None = None
        self.sent_due = now
        self.outcome: Outcome | None = None
        self.banned: str | None = None


class Strays:
    """All strays of one crawl."""

    def __init__(self, control: Control) -> None:
        self._control = control
        self._out: dict[Request, Stray] = {}

    def find(self, request: Request) -> Stray | None:
        """The stray that *request* is; None if it is none, or has not been let go."""
        return self._out.get(request)

    async def let_go(self, request: Request) -> None:
        """Wait until *request* may be sent."""
        control = self._control
        delay_s = request.meta.pop(names.DELAY_S, None)
        domain = control.domains.get(domain_key(request.url), control.now())
        domain.strays += 1
        try:
            if delay_s is not None:
                await self._aside(request, seconds(delay_s, request))
            while (
                not self._may_go_at_once(request) and (wait_s := self._wait_s(request, domain)) > 0
            ):
                await self._aside(request, min(wait_s, LOOK_AGAIN_S))
        finally:
            domain.strays -= 1
        now = control.now()
        stray = Stray(domain=domain, now=now)
        proxies = control.proxies
        if proxies is None:
            stray.ticket = domain.governor.sent(now)
        elif proxies.must_not_leave(request):
            raise IgnoreRequest("the crawl stops, and no proxy may carry it")
        else:
            proxies.board(stray, request, domain, now)
        domain.in_flight += 1
        self._out[request] = stray

    def land(self, active: set[Request], now: float) -> None:
        """Take note of the strays that have left the downloader, whose requests in hand are *active*."""
        for request in self._out.keys() - active:
            stray = self._out.pop(request)
            stray.domain.in_flight -= 1
            if stray.ticket is not None:
                stray.domain.governor.abandoned(stray.ticket, now)
            if stray.ride is not None and self._control.proxies is not None:
                self._control.proxies.abandoned(stray.ride, now)
                stray.ride = None
            self._control.stand_in_line(stray.domain.name)

    def _may_go_at_once(self, request: Request) -> bool:
        """Is *request* one of the few that ask silent hosts whether it is them, paced among themselves?

        Proxies are chosen while it waits.
        """
        return names.WITNESS in request.meta and self._control.proxies is None

    def _wait_s(self, request: Request, domain: Domain) -> float:
        proxies = self._control.proxies
        now = self._control.now()
        if self._control.stopping:
            if proxies is not None:
                proxies.stray_due(request, domain, 0, now)
            return 0.0
        self._control.land(now)
        in_flight = domain.in_flight - self._waits_for_this(domain)
        if proxies is not None:
            return proxies.stray_due(request, domain, in_flight, now) - now
        return domain.governor.next_send_due(now, in_flight) - now

    def _waits_for_this(self, domain: Domain) -> int:
        """Is the page in whose context this runs itself counted as in flight to *domain*, though it only waits for this?

        A page waits for robots.txt inside the downloader: at a limit of one neither would ever go.
        """
        lease = self._control.lease_at_work()
        return int(lease is not None and lease.flying and lease.domain is domain)

    async def _aside(self, request: Request, seconds: float) -> None:
        """Sleep without holding one of the downloader's places: a waiting file must not stop healthy hosts."""
        active = self._control.active()
        held = request in active
        active.discard(request)
        try:
            await asyncio.sleep(seconds)
        finally:
            if held:
                active.add(request)

"""Puts requests on proxies and tells the pool how they fared; only made where `SLUICE_PROXIES` is set.

The rule it keeps: a request leaves directly only if it or the user says so. Whoever is handed out has its proxy already, so
that a domain's ceiling is what its healthy pairs carry; and neither the proxy nor its credentials are ever part of what is
stored: each time a request goes, it gets one anew.
"""

from __future__ import annotations

import itertools
import logging
from typing import TYPE_CHECKING, Any

from scrapy import signals

from . import names
from .codec import Unreadable
from .policy.bottleneck import Cause
from .policy.governor import DomainGovernor
from .policy.proxies import Charge, LimitBy, News, ProxyPool, Ride, Wait
from .policy.proxies.member import Health, Member
from .poolwatch import PoolWatch
from .proxyfaults import UNWELCOME, is_tunnel_error, news_of_exception, news_of_response
from .proxyfeed import ProxyFeed
from .proxymarks import is_pools_choice, put_on, session_of, strip

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.http import Response

    from .control import Control
    from .domains import Domain
    from .leases import Lease
    from .policy.frontier import Entry
    from .policy.outcome import Outcome
    from .strays import Stray

logger = logging.getLogger("sluice.proxies")

LOOK_AGAIN_S = 1.0
"""A domain that waits for a busy pool is woken when a request ends; should that be another's, it looks again after this."""
ASIDE_S = 0.05
"""How long a request waits whose session's proxy is busy, so that others of its domain may go."""
ASIDE_AT_ONCE = 32
SILENT_S = 5.0
"""A pool that has brought no answer for so long is not waited for when the crawl stops."""


class Proxies:
    """The pool of one crawl, between the scheduler and the middlewares.

    Args:
        control: The crawl's control room.
        encoding: Of the credentials in a header, as HTTPPROXY_AUTH_ENCODING says.
    """

    def __init__(self, *, control: Control, encoding: str) -> None:
        config = control.config
        assert config.proxies is not None  # noqa: S101 - whoever makes it has looked
        self._control = control
        self._encoding = encoding
        self._direct = config.proxy_direct
        self.by_proxy = config.limit_by == LimitBy.PROXY.value
        self.pool = ProxyPool(
            limit_by=LimitBy(config.limit_by),
            ceiling=config.proxy_concurrency,
            ban_rest_s=config.proxy_ban_s,
            u=control.draw,
            pair_governor=self._pair_governor,
        )
        self._chosen: Member | None = None  # for the request in hand
        self._along: Ride | None = None  # or the page in whose place it goes
        self._waiting: dict[
            str, bool
        ] = {}  # domains that wait for the pool: is none good for them?
        self._feed = ProxyFeed(
            place=config.proxies,
            pool=self.pool,
            refresh_s=config.proxy_refresh_s,
            changed=self._list_changed,
            wanted=lambda: not control.stopping,
        )
        self._watch = PoolWatch(control=control, pool=self.pool, direct=self._direct)

    # -- the list ------------------------------------------------------------------------------------------------------

    async def open(self) -> None:
        """Read the list; from then on it is read again whenever it changes.

        Raises:
            BadProxyList: there is none.
        """
        await self._feed.open()
        self._watch.begin()
        self._control.crawler.signals.connect(self.request_left, signals.request_reached_downloader)

    def close(self) -> None:
        """Look at the list no more."""
        self._feed.close()
        self._watch.close()

    def _list_changed(self) -> None:
        self._watch.count()
        self._wake_all()

    # -- which way a request goes --------------------------------------------------------------------------------------

    def goes_own_way(self, request: Request) -> bool:
        """Does *request* name its proxy itself, or none (`meta["proxy"]`), or is it nothing that a proxy carries?"""
        if not request.url.startswith("http"):
            return True
        return "proxy" in request.meta and not is_pools_choice(request)

    def _way(self, entry: Entry) -> tuple[bool, str | None]:
        """Does *entry* go its own way; and its session, if it keeps to one."""
        request = entry.request
        if isinstance(request, bytes):
            if b'"proxy"' not in request and b'"sluice_session"' not in request:
                return False, None
            try:
                request = entry.request = self._control.ledger.codec.decode(request)
            except Unreadable:
                return False, None  # whoever hands it out says so
        return self.goes_own_way(request), session_of(request)

    def next_send_due(self, domain: Domain, now: float) -> float:
        """When the next request of *domain* may go: its governor's word and the pool's. Chooses the proxy, if that is now.

        Returns:
            As `DomainGovernor.next_send_due`.
        """
        control = self._control
        self._chosen = None
        for _ in range(ASIDE_AT_ONCE):
            entry = control.frontier.peek(domain.name)
            if entry is None:
                return now  # its window is empty, as the scheduler will see
            own, session = self._way(entry)
            if own or not self.by_proxy:
                due = domain.governor.next_send_due(now, domain.in_flight)
                if due > now or own:
                    return due
            found = self.pool.choose(domain.name, now, session)
            if isinstance(found, Member):
                self._chosen = found
                self._waiting.pop(domain.name, None)
                return now
            if self._direct and found.none_good:
                return now
            if session is None or found.none_good:
                return self._wait(domain.name, found, now)
            control.frontier.pop(domain.name)
            control.admit(entry, ASIDE_S)
        return now + ASIDE_S

    def _wait(self, name: str, wait: Wait, now: float) -> float:
        self._waiting[name] = wait.none_good
        self._watch.look(now)
        return min(wait.until_due, now + LOOK_AGAIN_S)

    def board(self, out: Lease | Stray, request: Request, domain: Domain, now: float) -> None:
        """*request* leaves: on the proxy that was chosen for it, or by itself."""
        member, self._chosen = self._chosen, None
        along, self._along = self._along, None
        if member is None:
            out.ticket = domain.governor.sent(now)
            return
        if along is not None:
            out.ride = self.pool.sent_along(along, now)
        else:
            out.ride = self.pool.sent(member, domain.name, now)
        if not self.by_proxy:
            out.ticket = domain.governor.sent(now)
        strip(request)  # a copy of one that is out already
        put_on(request, member.address, encoding=self._encoding)

    # -- requests beside the scheduler -----------------------------------------------------------------------------------

    def stray_due(self, request: Request, domain: Domain, in_flight: int, now: float) -> float:
        """The same for robots.txt and media. What pages wait for goes in a place that one of them holds."""
        self._chosen = self._along = None
        own = self.goes_own_way(request)
        if own or not self.by_proxy:
            due = domain.governor.next_send_due(now, in_flight)
            if due > now or own:
                return due
        self._along = self._place_held_by_a_page(domain)
        if self._along is not None:
            self._chosen = self._along.member
            return now
        found = self.pool.choose(domain.name, now, session_of(request))
        if isinstance(found, Member):
            self._chosen = found
            return now
        if self._direct and found.none_good:
            return now
        self._watch.look(now)
        return min(found.until_due, now + LOOK_AGAIN_S)

    def _place_held_by_a_page(self, domain: Domain) -> Ride | None:
        """A ride of *domain* that has not left, if a page waits for what runs here: robots.txt goes before it leaves.

        Else the pages could hold all places of the pool and wait for ever.
        """
        waits = self._control.lease_at_work()
        if waits is None or not waits.flying or waits.domain is not domain:
            return None
        held = [
            lease.ride
            for lease in self._control.ledger.leases.values()
            if lease.domain is domain and lease.ride is not None and not lease.ride.left
        ]
        usable = [ride for ride in held if ride.member.health is Health.HEALTHY]
        return next(iter(usable or [ride for ride in held if ride.probe]), None)

    def request_left(self, request: Request) -> None:
        """*request* has passed the middlewares: it is on the wire, or in the downloader's queue for it."""
        lease = self._control.lease_of(request)
        if lease is not None and lease.ride is not None:
            lease.ride.left = True

    def must_not_leave(self, request: Request) -> bool:
        """Would *request*, let go without a proxy since the crawl stops, go directly against the user's will?"""
        return self._chosen is None and not self._direct and not self.goes_own_way(request)

    # -- the news --------------------------------------------------------------------------------------------------------

    def answered(
        self, out: Lease | Stray, request: Request, response: Response, outcome: Outcome,
        *, refused: bool, wait_s: float | None, latency_s: float,
    ) -> Charge:  # fmt: skip
        """A response came through the proxy of *out*."""
        news = news_of_response(response, banned=out.banned is not None, refused=refused)
        if response.status == UNWELCOME:
            self._unwelcome(out.ride)
        return self._finish(
            out,
            request,
            news,
            outcome,
            wait_s=wait_s,
            latency_s=latency_s,
            why=f"answers {response.status}",
        )

    def failed(
        self, out: Lease | Stray, request: Request, exception: Exception, outcome: Outcome
    ) -> Charge:
        """No response came through the proxy of *out*."""
        news, status = news_of_exception(exception)
        if status == UNWELCOME:
            self._unwelcome(out.ride)
        now = self._control.now()
        return self._finish(
            out,
            request,
            news,
            outcome,
            wait_s=None,
            latency_s=now - out.sent_due,
            why=type(exception).__name__,
        )

    def is_failure(self, exception: BaseException) -> bool:
        """Is *exception* one that only a proxy brings?"""
        return is_tunnel_error(exception)

    def _finish(
        self, out: Lease | Stray, request: Request, news: News, outcome: Outcome,
        *, wait_s: float | None, latency_s: float, why: str,
    ) -> Charge:  # fmt: skip
        control = self._control
        ride, out.ride = out.ride, None
        assert ride is not None  # noqa: S101 - the caller has looked
        now = control.now()
        before = ride.member.health
        charge = self.pool.finished(
            ride, news, now, outcome=outcome, latency_s=latency_s, wait_s=wait_s,
            tries=request.meta.get(names.PROXY_TRIES, 0),
        )  # fmt: skip
        out.proxy = ride.name
        if charge is Charge.PROXY:
            control.stats.inc_value(names.STAT_PROXY_FAILURES)
            out.spared = news.value
            if ride.member.health is Health.RESTING and before is not Health.RESTING:
                control.stats.inc_value(names.STAT_PROXY_RESTS)
                logger.debug("Proxy %s rests: %s", ride.name, why)
        elif news is News.BANNED:
            control.stats.inc_value(names.STAT_PROXY_BANS)
        self._watch.look(now)
        if before is not Health.HEALTHY and ride.member.health is Health.HEALTHY:
            self._wake_all()
        else:
            self._wake_some()
        return charge

    def abandoned(self, ride: Ride, now: float) -> None:
        """The request never left."""
        self.pool.abandoned(ride, now)
        self._wake_some()

    def _unwelcome(self, ride: Ride | None) -> None:
        if ride is not None and not ride.member.unwelcome:
            ride.member.unwelcome = True
            logger.warning("Proxy %s does not take our credentials (407): it rests", ride.name)

    # -- who is woken ----------------------------------------------------------------------------------------------------

    def _wake_some(self) -> None:
        """A place is free: whoever waits longest is asked, and one more in case it is no place for that one."""
        for name in list(itertools.islice(self._waiting, 2)):
            del self._waiting[name]
            self._control.stand_in_line(name)

    def _wake_all(self) -> None:
        waiting, self._waiting = self._waiting, {}
        for name in waiting:
            self._control.stand_in_line(name)
        if self._control.is_open:
            self._control.wake_soon()

    def forget(self, name: str) -> None:
        """The crawl has no more work for domain *name*."""
        self._waiting.pop(name, None)
        self.pool.forget(name)

    # -- sight -----------------------------------------------------------------------------------------------------------

    def cause(self, name: str, of_governor: Cause) -> Cause:
        """What keeps domain *name*, whose governor says *of_governor*, from its next request."""
        none_good = self._waiting.get(name)
        if none_good:
            return Cause.PROXY
        if none_good is False:
            return Cause.POOL
        return Cause.NONE if self.by_proxy else of_governor

    def why(self, name: str) -> str:
        """Why domain *name* waits for the pool, in words; empty if it does not."""
        none_good = self._waiting.get(name)
        if none_good is None:
            return ""
        healthy, known = self.pool.healthy, len(self.pool)
        if not none_good:
            return f"{healthy} of {known} proxies carry what they may"
        if healthy:
            return f"all {healthy} healthy proxies rest for it"
        return f"no healthy proxy: 0 of {known}"

    def worst(self, count: int, now: float) -> list[dict[str, Any]]:
        """The first *count* proxies for whoever looks: the resting, then those that fail most."""
        return self._watch.worst(count, now)

    def hopeless(self, now: float) -> bool:
        """Is all that is in flight on proxies that bring no answers: unhealthy ones, or any while all are silent?"""
        rides = [lease.ride for lease in self._control.ledger.leases.values() if lease.flying]
        silent = now - self.pool.answered_due >= SILENT_S
        return bool(rides) and all(
            ride is not None and (silent or ride.member.health is not Health.HEALTHY)
            for ride in rides
        )

    def _pair_governor(self, name: str) -> DomainGovernor:
        control = self._control
        governor = DomainGovernor(
            max_concurrency=control.politeness.ceiling(name),
            min_interval_s=control.politeness.min_delay_s(name),
            u=control.draw,
        )
        control.politeness.set_floors(name, governor)
        return governor

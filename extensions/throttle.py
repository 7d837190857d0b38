"""Measures every answer and tells the domain's governor. It never waits, drops or changes anything.

The rule it keeps: the middleware measures, the scheduler enforces. Sleeping here would hold a place that a healthy domain
could use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

from twisted.python.failure import Failure

from . import names
from .bans import BanCheck
from .control import Control
from .domains import Trouble
from .failures import NETWORK_FAILURES
from .letters import cause_of, trouble_of
from .partial import PartialAnswers
from .policy.domains import domain_key
from .policy.outcome import Outcome
from .policy.proxies import Charge, News
from .policy.retry_after import parse_retry_after
from .policy.wording import duration
from .proxyfaults import UNWELCOME
from .ratelimit_headers import quota_of

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from .domains import Domain
    from .leases import Lease
    from .strays import Stray

OVERLOAD_STATUSES = frozenset({500, 502, 503, 504, 520, 521, 522, 523, 524, 408})
"""Answers that say "too much" without saying when to come back. 500 is among them: many frameworks answer it when their
workers or their database pool run out, and a single one moves little."""

NEVER_ANSWERED_S = 120.0
"""A host that has never answered in this job is given up after this: a wrong name or a dead host, of which broad crawls have
many, must not keep a finished crawl waiting for a quarter of an hour."""


class ThrottleMiddleware:
    """Stands between decompression and retry, so that it sees whole pages, and each answer before it is retried."""

    def __init__(self, *, control: Control) -> None:
        self._control = control
        self._bans = BanCheck(control)
        self._partial = PartialAnswers(control.crawler.signals)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Find the crawl's control room."""
        return cls(control=Control.of(crawler))

    def process_request(self, request: Request) -> Coroutine[Any, Any, None] | None:
        """Let a scheduled request pass; have one that goes round the scheduler wait for its host's governor."""
        control = self._control
        if (
            control.lease_of(request) is not None
            or not control.is_open
            or not domain_key(request.url)
        ):
            return None
        return control.strays.let_go(request)

    def process_response(self, request: Request, response: Response) -> Response:
        """Classify *response*."""
        out = self._find(request)
        if out is None or (out.ticket is None and out.ride is None):
            return response
        control = self._control
        wait_s: float | None = None
        banned = self._bans.verdict(response)
        if banned is not None:
            out.banned = banned
            control.stats.inc_value(names.STAT_BANS)
        if "cached" in response.flags:
            outcome = Outcome.IGNORED
            if out.ride is not None and control.proxies is not None:
                control.proxies.abandoned(out.ride, control.now())
                out.ride = None
        elif banned is not None:
            outcome = Outcome.REFUSED
        else:
            if response.status in {429, 503}:
                wait_s = self._retry_after_s(response)
            outcome = classify(response.status, asks_to_wait=wait_s is not None)
            quota = (
                None
                if self._is_proxys(response)
                else quota_of(response.headers, now_at=control.now_at())
            )
            if quota is not None and quota.reset_s <= control.config.max_retry_after_s:
                if outcome is Outcome.REFUSED and wait_s is None and not quota.remaining:
                    wait_s = quota.reset_s
                out.domain.governor.hint(
                    control.now(), remaining=quota.remaining, reset_s=quota.reset_s
                )
            control.outage.answered(out.domain.name, request.url)
        if out.ride is not None and self._charge(out, request, response, outcome, wait_s):
            return response
        if outcome in {Outcome.REFUSED, Outcome.OVERLOADED}:
            cause = "ban" if banned else f"http {response.status}"
            out.domain.trouble = Trouble(cause, f"last: {cause}", status=response.status)
        note = f"ban page: {banned}" if banned else note_of(response.status, outcome, wait_s)
        self._tell(out, outcome, request, wait_s, note=note, what=note or str(response.status))
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        """Classify a failure to get any response."""
        self._partial.explain(request, exception)
        out = self._find(request)
        if out is None or (out.ticket is None and out.ride is None):
            return
        control = self._control
        proxies = control.proxies
        if not isinstance(exception, NETWORK_FAILURES) and not (
            proxies is not None and proxies.is_failure(exception)
        ):
            return
        now = control.now()
        if proxies is not None and out.ride is not None:
            charge = proxies.failed(out, request, exception, Outcome.OVERLOADED)
            if charge is Charge.PROXY:
                self._abandon(out, now)
                self._lose_patience(out, now)
                return
        if not request.meta.get("retry_times"):
            # A page that failed before, while others came, says nothing about our network when it fails again.
            control.outage.failed(out.domain.name, now)
        if control.outage.out(now):
            self._abandon(out, now)  # the host is not to be blamed for it
        out.domain.trouble = trouble_of(exception)
        note = cause_of(Failure(exception))  # type: ignore[no-untyped-call]
        self._tell(out, Outcome.OVERLOADED, request, None, note=note, what=note)

    def _is_proxys(self, response: Response) -> bool:
        return response.status == UNWELCOME

    def _charge(
        self,
        out: Lease | Stray,
        request: Request,
        response: Response,
        outcome: Outcome,
        wait_s: float | None,
    ) -> bool:
        """Tell the pool how the ride of *out* went. Is that all that there is to tell, since the host has said nothing?"""
        control = self._control
        if control.proxies is None:
            return False
        charge = control.proxies.answered(
            out,
            request,
            response,
            outcome,
            refused=outcome is Outcome.REFUSED,
            wait_s=wait_s,
            latency_s=self._latency_s(out, request),
        )
        if charge is Charge.PROXY:
            self._abandon(out, control.now())
            self._lose_patience(out, control.now())
            return True
        if charge is Charge.PAIR:
            self._abandon(out, control.now())
        return False

    def _lose_patience(self, out: Lease | Stray, now: float) -> None:
        """A domain that has not answered through any proxy for long may itself be dead; proxies that are surely are not it."""
        domain = out.domain
        if out.spared == News.PROXY.value:
            return
        if domain.patience_due == float("inf"):
            domain.patience_due = now + self._control.config.give_up_after_s
        elif now >= domain.patience_due:
            self._control.give_up(domain.name, "no answer through any proxy")

    def _abandon(self, out: Lease | Stray, now: float) -> None:
        """The host's governor hears nothing of it."""
        ticket, out.ticket = out.ticket, None
        if ticket is not None:
            out.domain.governor.abandoned(ticket, now)

    def _latency_s(self, out: Lease | Stray, request: Request) -> float:
        latency_s = request.meta.get("download_latency")
        return self._control.now() - out.sent_due if latency_s is None else float(latency_s)

    def _find(self, request: Request) -> Lease | Stray | None:
        return self._control.lease_of(request) or self._control.strays.find(request)

    def _retry_after_s(self, response: Response) -> float | None:
        values = [bytes(v) for v in response.headers.getlist("Retry-After")]
        if not values:
            return None
        date = response.headers.get("Date")
        return parse_retry_after(
            values, now_at=self._control.now_at(), server_date=bytes(date) if date else None
        )

    def _tell(
        self,
        lease: Lease | Stray,
        outcome: Outcome,
        request: Request,
        wait_s: float | None,
        *,
        note: str,
        what: str,
    ) -> None:
        control = self._control
        now = control.now()
        ticket, lease.ticket = lease.ticket, None
        domain = lease.domain
        lease.outcome = outcome
        latency_s = self._latency_s(lease, request)
        held_before = domain.governor.held_until
        if ticket is not None:
            domain.governor.finished(
                ticket,
                outcome,
                now,
                latency_s=None if _is_robots_txt(request) else latency_s,
                retry_after_s=wait_s,
            )
            if control.shared is not None:
                control.shared.answered(domain)
        control.stats.inc_value(names.STAT_OUTCOME % outcome.value)
        held = domain.governor.held_until
        control.book.answered(
            domain.name,
            outcome,
            latency_s=latency_s,
            note=note,
            what=what,
            now_at=control.now_at(),
            held_s=max(0.0, held - now) if held is not None and held != held_before else 0.0,
        )
        if outcome is Outcome.REFUSED:
            control.tell.refused(domain.name, note)
        self._judge(domain, outcome, now, wait_s, note=note)
        if held is not None and held_before is None:
            control.stats.inc_value(names.STAT_HOLDS)

    def _judge(
        self, domain: Domain, outcome: Outcome, now: float, wait_s: float | None, *, note: str
    ) -> None:
        """Is the domain's patience, or ours, at its end?"""
        control = self._control
        if outcome is Outcome.SUCCESS or outcome is Outcome.IGNORED:
            domain.patience_due = float("inf")
            domain.pages += 1
            return
        if outcome is Outcome.REFUSED:
            domain.refused += 1
        if control.outage.out(now):
            if control.outage.sure(now):
                domain.patience_due = float("inf")  # the silence is ours
            return
        limit_s = control.config.give_up_after_s
        if not (domain.pages or domain.refused or control.outage.knows(domain.name)):
            limit_s = min(limit_s, NEVER_ANSWERED_S)
        if domain.patience_due == float("inf"):
            domain.patience_due = now + limit_s
        if wait_s is not None:
            if wait_s > control.config.max_retry_after_s:
                control.give_up(domain.name, "parked")
                return
            domain.patience_due = max(domain.patience_due, now + wait_s + limit_s)
        if now >= domain.patience_due:
            control.give_up(domain.name, "throttled" if outcome is Outcome.REFUSED else note)


def _is_robots_txt(request: Request) -> bool:
    """A file that hosts give from where they do not make pages: its time would pass for the best that they can."""
    return request.url.endswith("/robots.txt") and urlsplit(request.url).path == "/robots.txt"


def note_of(status: int, outcome: Outcome, wait_s: float | None) -> str:
    """What a refusal or an overload said, in a few words; empty for all else."""
    if outcome not in {Outcome.REFUSED, Outcome.OVERLOADED}:
        return ""
    return f"{status}, Retry-After {duration(wait_s)}" if wait_s is not None else str(status)


def classify(status: int, *, asks_to_wait: bool) -> Outcome:
    """What a response's status says about the host's capacity.

    Args:
        status: HTTP status.
        asks_to_wait: Whether it carries a usable Retry-After.
    """
    if status == 429 or (status == 503 and asks_to_wait):  # noqa: PLR2004 - HTTP's own numbers
        return Outcome.REFUSED
    if status in OVERLOAD_STATUSES:
        return Outcome.OVERLOADED
    if 200 <= status < 300:  # noqa: PLR2004
        return Outcome.SUCCESS
    return Outcome.IGNORED

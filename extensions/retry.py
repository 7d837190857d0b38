"""Retries with Scrapy's own meaning, settings and stats; the scheduler sends them later, within a budget.

The rule it keeps: an attempt is spent only on a request that could have succeeded. An answer that refuses for being too fast,
and a failure while this machine's own network or the whole host is down, put the request back without spending one; both
have bounds of their own (`SLUICE_MAX_REFUSALS`, `SLUICE_GIVE_UP_AFTER_S`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy.downloadermiddlewares.retry import get_retry_request
from scrapy.exceptions import NotConfigured
from scrapy.utils.misc import load_object
from scrapy.utils.response import response_status_message

from . import names
from .bans import Banned
from .control import Control
from .failures import never_connected
from .policy.outcome import Outcome
from .policy.proxies import News
from .proxymarks import strip
from .strays import Stray

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

    from .leases import Lease


STRAY_AGAIN_S = 0.05
"""How long robots.txt and media wait that their proxy has failed."""


class RetryMiddleware:
    """In the place of Scrapy's own. Which failures are retried, and how often, is what Scrapy's settings say."""

    def __init__(
        self,
        *,
        control: Control,
        max_retry_times: int,
        retry_codes: frozenset[int],
        exceptions: tuple[type[Exception], ...],
        priority_adjust: int,
        give_up_log_level: str,
    ) -> None:
        self._control = control
        self._max_retry_times = max_retry_times
        self._retry_codes = retry_codes
        self._exceptions = exceptions
        self._priority_adjust = priority_adjust
        self._give_up_log_level = give_up_log_level

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Read Scrapy's retry settings."""
        settings = crawler.settings
        control = crawler.get_extension(Control)
        if control is None or not settings.getbool("RETRY_ENABLED"):
            raise NotConfigured
        return cls(
            control=control,
            max_retry_times=settings.getint("RETRY_TIMES"),
            retry_codes=frozenset(int(code) for code in settings.getlist("RETRY_HTTP_CODES")),
            exceptions=tuple(
                load_object(e) if isinstance(e, str) else e
                for e in settings.getlist("RETRY_EXCEPTIONS")
            ),
            priority_adjust=settings.getint("RETRY_PRIORITY_ADJUST"),
            give_up_log_level=settings["RETRY_GIVE_UP_LOG_LEVEL"],
        )

    def process_response(self, request: Request, response: Response) -> Request | Response:
        """Retry by status, and what the ban rules called a wall.

        Raises:
            Banned: a ban page that may not be tried again; no callback ever sees it.
        """
        out = self._out(request)
        if out is not None and out.spared is not None:
            again = self._through_another(request, out)
            if again is not None:
                return again
        banned = None if out is None else out.banned
        if out is not None and (banned or out.outcome is Outcome.REFUSED):
            again = self._refused(request, out, response.status)
            if again is not None:
                return again
            if banned:
                raise Banned(f"ban page: {banned}")
        if not request.meta.get("dont_retry") and response.status in self._retry_codes:
            return self._retry(request, out, response_status_message(response.status)) or response
        return response

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """Retry by exception."""
        out = self._out(request)
        if out is not None and out.spared is not None:
            again = self._through_another(request, out)
            if again is not None:
                return again
        if request.meta.get("dont_retry") or not isinstance(exception, self._exceptions):
            return None
        if out is not None and self._is_nobodys_fault(out, exception):
            again = request.copy()
            again.dont_filter = True
            self._control.stats.inc_value(names.STAT_OUTAGE_RETRIES)
            return again
        return self._retry(request, out, exception)

    def _is_nobodys_fault(self, out: Lease | Stray, exception: Exception) -> bool:
        """Would any other page have failed as this one did?

        Our network is out, or a host that answered before cannot be connected to: the page never reached it.
        Its governor sees to the pauses, and `SLUICE_GIVE_UP_AFTER_S` to an end.
        """
        if self._control.outage.out(self._control.now()):
            return True
        domain = out.domain
        if domain.given_up is not None or not never_connected(exception):
            return False
        return domain.pages > 0 or self._control.outage.knows(domain.name)

    def _out(self, request: Request) -> Lease | Stray | None:
        return self._control.lease_of(request) or self._control.strays.find(request)

    def _through_another(self, request: Request, out: Lease | Stray) -> Request | None:
        """Put *request* back, since its proxy failed it; it has spent nothing.

        Returns:
            None where it may have reached its host, and must not do so twice.
        """
        if request.meta.get("dont_retry") and out.spared != News.PROXY.value:
            return None
        again = request.copy()
        again.dont_filter = True
        again.meta[names.PROXY_TRIES] = request.meta.get(names.PROXY_TRIES, 0) + 1
        if isinstance(out, Stray):
            again.meta[names.DELAY_S] = STRAY_AGAIN_S
        strip(again)
        self._control.book.retries_out += 1
        return again

    def _refused(self, request: Request, out: Lease | Stray, status: int) -> Request | None:
        """Put *request* back without spending an attempt; the governor knows when its domain may be asked again."""
        if request.meta.get("dont_retry"):
            return None
        control = self._control
        refusals = request.meta.get(names.REFUSALS, 0) + 1
        if refusals > control.config.max_refusals or out.domain.given_up is not None:
            control.stats.inc_value("retry/max_reached")
            return None
        again = request.copy()
        again.dont_filter = True
        again.meta[names.REFUSALS] = refusals
        again.meta.setdefault(names.FIRST_AT, control.now_at())
        control.book.retries_out += 1
        if out.banned:
            again.meta["dont_cache"] = True  # a cache would answer the retry with the same wall
        control.stats.inc_value("retry/count")
        control.stats.inc_value(f"retry/reason_count/{response_status_message(status)}")
        return again

    def _retry(
        self, request: Request, out: Lease | Stray | None, reason: str | Exception
    ) -> Request | None:
        if out is None:
            return None  # it was never let go: nobody would hold the retry back
        meta = request.meta
        again = get_retry_request(
            request,
            reason=reason,
            spider=self._control.spider,
            max_retry_times=meta.get("max_retry_times", self._max_retry_times),
            priority_adjust=meta.get("priority_adjust", self._priority_adjust),
            give_up_log_level=meta.get("give_up_log_level", self._give_up_log_level),
        )
        if again is not None:
            self._control.book.retries_out += 1
            if isinstance(out, Stray):
                # `download_async` sends it on at once; it waits before it is let go.
                again.meta[names.DELAY_S] = self._control.backoff_s(again.meta["retry_times"])
            again.meta.setdefault(names.FIRST_AT, self._control.now_at())
        return again


class BanRetryMiddleware(RetryMiddleware):
    """What is left of it beside another retry middleware: ban pages and proxies' own failures, of which that knows nothing."""

    def process_response(self, request: Request, response: Response) -> Request | Response:
        """Retry what the ban rules called a wall, or what a proxy failed at; leave all else to the other."""
        out = self._out(request)
        if out is None or not (out.banned or out.spared is not None):
            return response
        return super().process_response(request, response)

    def process_exception(self, request: Request, exception: Exception) -> Request | None:
        """The same for failures."""
        out = self._out(request)
        if out is None or out.spared is None:
            return None
        return super().process_exception(request, exception)

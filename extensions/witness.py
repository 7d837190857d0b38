"""Asks hosts that answered before whether this machine's network works, when it seems not to.

The rule it keeps: what tells is an answer over HTTP, the crawl's own way with its proxies and its handler; a connection
alone is also accepted by what stands between. robots.txt is what every host expects to be asked for.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy import Request
from scrapy.utils.defer import deferred_from_coro

from . import names
from .policy.blocked import Blocked
from .policy.domains import domain_key

if TYPE_CHECKING:
    from .control import Control
    from .domains import Domain

_BY_SILENCE = {Blocked.DOWN, Blocked.HOLD, Blocked.PROBE}

logger = logging.getLogger(__name__)

KEPT = 16
"""Witnesses that are kept with a job."""
ANSWER_WITHIN_S = 10.0
"""Longest wait for a witness; others are asked meanwhile."""


class Witness:
    """The probes of one crawl.

    Args:
        control: The crawl.
    """

    def __init__(self, control: Control) -> None:
        self._control = control
        self._asked: set[str] = set()
        self._told_of: float | None = None

    def ask(self, now: float) -> None:
        """Ask the next witness that may be asked; say it when the network is surely out."""
        control = self._control
        outage = control.outage
        outage.probed(now)
        if outage.sure(now) and self._told_of != outage.out_since:
            self._told_of = outage.out_since
            control.stats.inc_value(names.STAT_OUTAGES)
            logger.warning(
                "Every domain fails: this machine's own network seems down."
                " Only probes go out until one is answered; no request loses an attempt"
            )
        url = outage.next_witness()
        if url is None:
            return
        url = _robots_txt(url)
        domain = control.domains.get(domain_key(url), now)
        if url not in self._asked and self._may_be_asked(domain, now):
            self._asked.add(url)
            deferred_from_coro(self._ask(url))

    def kept(self) -> str:
        """Who can be asked, for the next process of this job: it may begin while the network is out. JSON."""
        witnesses = self._control.outage.witnesses(KEPT)
        return json.dumps({name: _robots_txt(url) for name, url in witnesses.items()})

    def take(self, kept: str | None) -> None:
        """Believe what an earlier process of this job *kept*."""
        try:
            witnesses = json.loads(kept) if kept else {}
            for name, url in reversed(witnesses.items()):
                self._control.outage.answered(str(name), str(url))
        except (ValueError, AttributeError):
            logger.debug("No witness is known from before: %r", kept)

    def _may_be_asked(self, domain: Domain, now: float) -> bool:
        """May go to *domain*, or may not only since it is silent itself, which this is to find out."""
        if domain.paused:
            return False
        blocked = domain.governor.blocked_by(now, domain.in_flight)
        silent = domain.trouble is not None and domain.trouble.status is None
        return blocked is Blocked.NONE or (silent and blocked in _BY_SILENCE)

    async def _ask(self, url: str) -> None:
        control = self._control
        timeout_s = control.crawler.settings.getfloat("DOWNLOAD_TIMEOUT") or ANSWER_WITHIN_S
        request = Request(
            url,
            meta={
                names.WITNESS: True,
                "dont_obey_robotstxt": True,
                "dont_retry": True,
                "dont_redirect": True,
                "dont_cache": True,
                "download_timeout": min(timeout_s, ANSWER_WITHIN_S),
            },
        )
        try:
            await control.engine.download_async(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the throttle has taken note of it
            logger.debug("No witness for the network: %s: %s", url, error)
        finally:
            self._asked.discard(url)


def _robots_txt(url: str) -> str:
    """That of *url*'s host, without credentials."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/robots.txt"

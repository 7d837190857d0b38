"""What Redis says became of requests, carried into this worker's frontier and books.

The rule it keeps: each request that was on its way is told of once: it is here, it is elsewhere, or it was known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals

from . import names

if TYPE_CHECKING:
    from scrapy import Request

    from .arrivals import Arrivals
    from .control import Control
    from .policy.frontier import Entry
    from .stores.base import DomainBacklog, StoredRequest
    from .stores.redis import RedisJobStore
    from .stores.redisvalues import Inherited


class Hearing:
    """Listens to the store's events. One for each worker.

    Args:
        control: The crawl's control room.
        store: The shared frontier.
        arrivals: What is on its way there.
    """

    def __init__(self, *, control: Control, store: RedisJobStore, arrivals: Arrivals) -> None:
        self._control = control
        self._arrivals = arrivals
        events = store.events
        events.arrived, events.passed_on = self._arrived, self._passed_on
        events.duplicate, events.backlog = self._duplicate, self._backlog
        events.crashed, events.inherited = self._crashed, self._inherited

    def _take_arriving(self, ids: list[int]) -> list[Entry]:
        control, entries = self._control, self._arrivals.take(ids)
        if control.entry_stored is not None:
            for entry in entries:
                if entry.seed is not None:
                    control.entry_stored(entry.seed)
        return entries

    def _arrived(self, ids: list[int]) -> None:
        control = self._control
        for entry in self._take_arriving(ids):
            control.admit(entry, 0.0)
        control.wake_soon()

    def _passed_on(self, ids: list[int]) -> None:
        for entry in self._take_arriving(ids):
            self._control.book.taken(entry.domain, -1)
            entry.request = None

    def _duplicate(self, ids: list[int]) -> None:
        control = self._control
        for entry in self._take_arriving(ids):
            control.book.taken(entry.domain, -1)
            self._report_duplicate(entry.request)

    def _report_duplicate(self, request: Request | bytes) -> None:
        control = self._control
        if isinstance(request, bytes):
            request = control.ledger.codec.decode(request)
        control.stats.inc_value(names.STAT_DUPLICATES)
        control.log_duplicate(request)
        control.crawler.signals.send_catch_log(
            signals.request_dropped, request=request, spider=control.spider
        )

    def _backlog(self, backlog: DomainBacklog) -> None:
        control = self._control
        control.book.taken(backlog.domain, backlog.count)
        control.frontier.note_on_disk(
            backlog.domain, backlog.count, backlog.best_priority, backlog.best_rank
        )
        control.flush_soon()

    def _crashed(self, rows: list[StoredRequest]) -> None:
        for row in rows:
            self._control.book.taken(row.domain)
            self._control.graves.bury_crashed(row)

    def _inherited(self, domain: Inherited) -> None:
        control = self._control
        kept = control.learned.hear(domain.domain, domain.text, control.now_at())
        if kept or domain.died:
            control.domains.inherit(
                domain.domain, kept, control.now(), age_s=domain.age_s, died=domain.died
            )

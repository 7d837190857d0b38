"""What happens to a request that comes in: dropped as a duplicate, delayed, held for its parent, or pending.

The rule it keeps: a request is never forgotten in silence. It is taken (True), it is a duplicate (False, counted), or it is a
dead letter with a reason.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
from typing import TYPE_CHECKING, Any

from . import names
from .codec import Unserialisable, holds_mutables
from .leases import ErrbackRecorder
from .lineage import current_lease
from .policy.domains import domain_key
from .policy.frontier import Entry
from .proxymarks import strip
from .stores.base import State

if TYPE_CHECKING:
    from scrapy import Request

    from .control import Control
    from .leases import Lease
    from .order import Order
    from .stores.deadletter_rows import Row

logger = logging.getLogger(__name__)

OF_ONE_REQUEST = (
    names.REFUSALS,
    names.FIRST_AT,
    names.DEAD_LETTER,
    names.ENTRY,
    names.PROXY_TRIES,
)
"""Meta keys that a callback copies to other requests with `meta=response.meta`, where they would be wrong."""


class Intake:
    """Takes requests in. One for each crawl."""

    def __init__(self, control: Control, *, first_id: int, order: Order) -> None:
        self._control = control
        self._last_id = first_id
        self._order = order
        self._start_counts: dict[bytes, int] = {}
        self._mark: bytes | None = None  # by which the request in hand is known

    def take(self, request: Request, *, mark: bytes | None = None) -> bool:
        """Take in *request*. False: it is a duplicate, and Scrapy says so with `request_dropped`.

        Args:
            request: Not seen by anybody yet.
            mark: By which a shared store knows it, where that is not its fingerprint.
        """
        control = self._control
        parent = control.lease_at_work()
        if isinstance(request.errback, ErrbackRecorder):
            request.errback = request.errback.inner
        if parent is not None:
            parent.has_children = True
            if parent.responded:
                for name in OF_ONE_REQUEST:
                    request.meta.pop(name, None)
            _keep_filterable(request, parent)
            if control.shared is not None:
                _keep_origin(request, parent)
        self._mark = mark
        if self._is_duplicate(request, parent):
            control.book.seeds_again += parent is None
            return False
        now = control.now()
        entry = self._entry(request)
        if control.shared is not None:
            entry.fingerprint = self._mark
            entry.parent = current_lease()
        if parent is None:
            control.book.seeds += 1
            if (seed := request.meta.get(names.ENTRY)) is not None:
                entry.seed = seed
                control.entry_taken(seed)
        elif parent.responded:
            control.book.links += 1
        if parent is not None and self._repeats_too_often(request, parent):
            control.book.taken(entry.domain)
            control.graves.bury_entry(entry, "loop", "its callback asked for it again and again")
            return True
        if control.everywhere >= control.config.max_pending_on_disk:
            control.book.taken(entry.domain)
            control.graves.bury_entry(entry, "overflow", "SLUICE_MAX_PENDING_ON_DISK was reached")
            return True
        delay_s = self._delay_s(request, parent, entry.domain, now)
        control.stats.inc_value("scheduler/enqueued")
        if control.ledger.durable and parent is not None and request.dont_filter:
            self._hold(entry, parent, delay_s)
        else:
            self._freeze(entry)
            control.book.taken(entry.domain)
            control.admit(entry, delay_s)
        return True

    def revive(self, row: Row) -> None:
        """Take in the request of a dead letter again: attempts reset, and no duplicate of anything.

        Raises:
            Unreadable: it cannot be made again.
        """
        request = self._control.ledger.codec.decode(row.payload)
        for name in ("retry_times", *OF_ONE_REQUEST):
            request.meta.pop(name, None)
        request.meta[names.DEAD_LETTER] = row.id
        request.dont_filter = True
        self._control.domains.get(self._entry(request).domain, self._control.now()).given_up = None
        mark = None
        if self._control.shared is not None:
            # Whoever claims it, after whatever crash: this replay of it goes once.
            text = b"letter %d %d %d" % (row.id, row.replays, round(1000 * row.last_at))
            mark = hashlib.sha1(text, usedforsecurity=False).digest()
        self.take(request, mark=mark)

    # -- duplicates ----------------------------------------------------------------------------------------------------

    def _is_duplicate(self, request: Request, parent: Lease | None) -> bool:
        control = self._control
        if request.dont_filter:
            if (
                not control.ledger.durable
                or parent is not None
                or names.DEAD_LETTER in request.meta
                or names.ENTRY in request.meta
            ):
                return False
            # A seed that a resumed job yields again: the n-th of this run is the n-th of the run before.
            fingerprint = control.fingerprint(request)
            nth = self._start_counts[fingerprint] = self._start_counts.get(fingerprint, 0) + 1
            mark = hashlib.sha1(b"seed %d " % nth + fingerprint, usedforsecurity=False).digest()
            self._mark = mark
            if not control.ledger.was_seen(mark):
                return False
        elif control.foreign_filter is not None:
            if not control.foreign_filter.request_seen(request):
                return False
            control.foreign_filter.log(request, control.spider)
        elif not control.ledger.was_seen(fingerprint := control.fingerprint(request)):
            self._mark = fingerprint
            return False
        else:
            control.log_duplicate(request)
        control.stats.inc_value(names.STAT_DUPLICATES)
        return True

    def _repeats_too_often(self, request: Request, parent: Lease) -> bool:
        """Does a callback ask for its own URL again without end? Retries and redirects do not count."""
        if not parent.responded or not request.dont_filter or request.url != parent.request.url:
            return False
        repeats = parent.request.meta.get(names.REPEATS, 0) + 1
        request.meta[names.REPEATS] = repeats
        return bool(repeats > self._control.config.max_repeats)

    # -- order and time ------------------------------------------------------------------------------------------------

    def next_id(self) -> int:
        """An id that no request of the job has had."""
        self._last_id += 1
        return self._last_id

    def _entry(self, request: Request) -> Entry:
        meta = request.meta
        ours = meta.pop(names.SLOT, None)
        if ours is not None and meta.get("download_slot") == ours:
            del meta["download_slot"]
        if self._control.proxies is not None:
            strip(request)
        row_id = self.next_id()
        rank = self._order.rank(row_id, seed=bool(meta.get("is_start_request")))
        _straighten(request)
        domain = meta.get("download_slot") or domain_key(request.url)
        return Entry(
            id=row_id, domain=domain, priority=request.priority, rank=rank, request=request
        )

    def _delay_s(self, request: Request, parent: Lease | None, domain: str, now: float) -> float:
        """Seconds that *request* must wait: what its maker asked for, or its turn as a retry."""
        asked = request.meta.pop(names.DELAY_S, None)
        if asked is not None:
            return seconds(asked, request)
        attempt = request.meta.get("retry_times", 0)
        if not attempt or parent is None or attempt <= parent.request.meta.get("retry_times", 0):
            return 0.0
        control = self._control
        backoff_s = control.backoff_s(attempt)
        record = control.domains.get(domain, now)
        record.retries += 1
        postponed_s = record.budget.reserve(now + backoff_s)
        if postponed_s:
            control.stats.inc_value(names.STAT_POSTPONED)
        return backoff_s + postponed_s

    def _freeze(self, entry: Entry) -> None:
        """Take *entry* as it is now if it holds what may change: lists, dicts, items.

        Whether it stays in memory or goes to disk must make no difference to its callback.
        """
        if holds_mutables(entry.request):
            with contextlib.suppress(Unserialisable):  # it can only live; `Ledger.put` says so
                entry.request = self._control.ledger.codec.encode(entry.request)

    def _hold(self, entry: Entry, parent: Lease, delay_s: float) -> None:
        """Keep *entry* until *parent* is acknowledged: after a crash the parent runs again and yields it again."""
        entry.delay_s = delay_s
        self._freeze(entry)
        if (
            delay_s
            or len(parent.children) < self._control.held_in_memory
            or not self._control.ledger.put(entry, State.HELD, parent=parent.id)
        ):
            parent.children.append(entry)
            return
        entry.request = None
        held = parent.held_on_disk.setdefault(entry.domain, [0, entry.priority, entry.rank])
        held[0] += 1
        if (-entry.priority, entry.rank) < (-held[1], held[2]):
            held[1:] = entry.priority, entry.rank


def seconds(asked: object, request: Request) -> float:
    """The wait that *request* asks for, 0 if that is no wait that ever ends."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        wait_s = float(asked)  # type: ignore[arg-type]
        if math.isfinite(wait_s):
            return max(0.0, wait_s)
    logger.warning("Ignored %s=%r of %s: not a number of seconds", names.DELAY_S, asked, request)
    return 0.0


def _straighten(request: Request) -> None:
    """Give *request* a priority that can be compared, and a slot that is a name, whatever was put there."""
    priority: Any = request.priority
    if not isinstance(priority, int):
        try:
            request.priority = int(priority)
        except (TypeError, ValueError, OverflowError):
            request.priority = 0
        logger.warning("Took priority %r of %s for %d", priority, request, request.priority)
    slot = request.meta.get("download_slot")
    if slot is not None and (not slot or not isinstance(slot, str)):
        del request.meta["download_slot"]
        if slot:
            request.meta["download_slot"] = str(slot)


def _keep_origin(request: Request, parent: Lease) -> None:
    """Have the results of a retry known by the request that it began as.

    A page that was stored by a worker that died then is fetched again; if that is refused first, its retry must not be
    another request, or its results would be stored twice.
    """
    meta, before = request.meta, parent.request.meta
    if not parent.responded and any(
        meta.get(count, 0) > before.get(count, 0)
        for count in ("retry_times", "redirect_times", names.REFUSALS, names.PROXY_TRIES)
    ):
        meta[names.ORIGIN] = before.get(names.ORIGIN, parent.id)
    else:
        meta.pop(names.ORIGIN, None)


def _keep_filterable(request: Request, parent: Lease) -> None:
    """A retry is never a duplicate, but what it redirects to may be one.

    Scrapy marks retries with `dont_filter`, and a redirect inherits that.
    """
    meta, before = request.meta, parent.request.meta
    if meta.get("redirect_times", 0) > before.get("redirect_times", 0):
        if meta.pop(names.FILTERABLE, False):
            request.dont_filter = False
    elif parent.responded and meta.get("retry_times", 0) <= before.get("retry_times", 0):
        meta.pop(names.FILTERABLE, None)  # a link that was given its page's meta
    elif request.dont_filter and not parent.request.dont_filter:
        meta[names.FILTERABLE] = True

"""Which domains a worker of a shared crawl claims, keeps and gives up.

The rule it keeps: a domain changes hands at rest. It is asked nothing more, what is in flight ends, the gap that it is owed
passes; only then does another worker get it, with what was learned of it. So two workers never ask it together, and a worker
that comes late has its share within seconds.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from .policy.governor import NOTHING
from .stores.base import State

if TYPE_CHECKING:
    from .arrivals import Arrivals
    from .control import Control
    from .domains import Domain
    from .stores.redis import RedisJobStore

HOUSEKEEPING_S = 1.0
RELEASE_AFTER_S = 5.0
"""An idle domain is kept so long: its next worker would not know when it was last asked."""
MAX_DOMAINS = 5000
AHEAD = 0.5
"""Domains that are ready beside those in flight, as a part of CONCURRENT_REQUESTS: a claim takes a round trip, in which a
place would stand empty."""
SHARED_AT_ONCE = 256
"""Domains that may be on their way to hungry workers at a time."""
LEAVES_WITHIN_S = 10.0
"""A domain whose requests in flight last longer stays: it would stand still all that time."""
TRIED_AGAIN_S = 60.0
"""Only after so long is it tried with that domain again: it would else stand still most of the time."""


class FairShare:
    """This worker's part in sharing the domains out. One for each worker.

    Args:
        control: The crawl's control room.
        store: The shared frontier.
        arrivals: What is on its way there.
    """

    def __init__(self, *, control: Control, store: RedisJobStore, arrivals: Arrivals) -> None:
        self._control = control
        self._store = store
        self._arrivals = arrivals
        self._housekeeping_due = 0.0
        self._idle_since: dict[str, float] = {}
        self._leaving: dict[str, float] = {}  # asked nothing more since
        self._stays_until: dict[str, float] = {}  # those that did not come to rest
        self._said: dict[str, tuple[float, ...]] = {}  # the news of domains when they were said
        self._rests: dict[str, float] = {}  # and their rests then
        self._progress_due = 0.0
        self._unsaid: set[str] = set()  # of these more is known

    def wish(self) -> None:
        """Say what the next exchange should claim, give up and tell."""
        control, wishes = self._control, self._store.wishes
        now = control.now()
        wishes.domains = 0 if control.stopping else self._wanted()
        wishes.release = []
        if now >= self._housekeeping_due:
            self._housekeeping_due = now + HOUSEKEEPING_S
            wishes.memory = True
            self._release_idle(now)
            self._choose_leavers(now)
            self._note_progress(now)
        self._let_go(now)
        self._tell_news(now)

    def forget(self) -> None:
        """All domains are others' now."""
        for name in list(self._leaving):
            self._stays(name)
        self._idle_since.clear()
        self._stays_until.clear()
        self._said.clear()
        self._rests.clear()
        self._unsaid.clear()

    # -- claiming --------------------------------------------------------------------------------

    def _wanted(self) -> int:
        """How many more domains could this worker use?"""
        control, store = self._control, self._store
        concurrency = control.crawler.settings.getint("CONCURRENT_REQUESTS")
        soon = math.ceil(AHEAD * concurrency) + concurrency - control.ledger.in_flight
        most = min(soon - control.turns.ready_count, MAX_DOMAINS - len(store.domains))
        if store.totals.hungry and store.totals.workers > 1:
            most = min(most, self._fair() - len(store.domains))
        return max(0, most)

    def _fair(self) -> int:
        """Domains that each worker may have when somebody lacks some."""
        totals = self._store.totals
        each = min(self._store.workers_per_domain, totals.workers)
        return math.ceil(totals.domains * each / totals.workers)

    # -- giving up -------------------------------------------------------------------------------

    def _release_idle(self, now: float) -> None:
        control, store = self._control, self._store
        for domain in store.domains:
            if self._is_busy(domain):
                self._idle_since.pop(domain, None)
                continue
            since = self._idle_since.setdefault(domain, now)
            if now - since >= max(RELEASE_AFTER_S, control.politeness.min_delay_s(domain)):
                self._release(domain)

    def _is_busy(self, domain: str) -> bool:
        control = self._control
        record = control.domains.find(domain)
        return bool(
            domain in control.frontier
            or self._arrivals.of(domain)
            or self._store.line(domain)
            or (record is not None and control.is_busy(record))
        )

    def _choose_leavers(self, now: float) -> None:
        """Others lack domains: of those over this worker's share, some are asked nothing more."""
        store, totals = self._store, self._store.totals
        surplus = 0
        if totals.hungry and totals.workers > 1 and not totals.unclaimed:
            surplus = len(store.domains) - self._fair()
        surplus -= len(self._leaving) + len(store.wishes.release)
        for name in list(self._leaving)[:surplus] if surplus < 0 else ():
            self._stays(name)
        surplus = min(surplus, SHARED_AT_ONCE - len(self._leaving))
        if surplus <= 0:
            return
        leaving = self._leaving.keys() | set(store.wishes.release)
        able = sorted(
            (
                name
                for name in store.domains - leaving
                if self._stays_until.get(name, 0.0) <= now and self._may_leave(name)
            ),
            key=store.line,
            reverse=True,
        )
        # Spread over long lines and short ones, so that both workers have work for as long.
        step = max(1, len(able) // surplus)
        for name in able[::step][:surplus]:
            self._leaving[name] = now
            self._control.domains.get(name, now).leaving = True

    def _may_leave(self, name: str) -> bool:
        queue = self._control.frontier.get(name)
        if queue is not None and not queue.is_storable:
            return False
        record = self._control.domains.find(name)
        return record is None or not (
            record.paused or record.given_up or record.governor.held_until is not None
        )

    def _let_go(self, now: float) -> None:
        """Give up those of the leaving that are at rest."""
        for name, since in list(self._leaving.items()):
            record = self._control.domains.find(name)
            if name not in self._store.domains:
                self._stays(name)  # as far as this worker is concerned: it is another's
            elif self._may_leave(name) and self._at_rest(name, record, now):
                self._hand_back(name, record, now)
            elif now - since > LEAVES_WITHIN_S:
                self._stays_until[name] = now + TRIED_AGAIN_S
                self._stays(name)
            elif not self._may_leave(name):
                self._stays(name)

    def _at_rest(self, name: str, record: Domain | None, now: float) -> bool:
        if self._arrivals.of(name):
            return False
        return record is None or (
            not record.in_flight
            and not record.strays
            and record.governor.next_send_due(now, 0) <= now
        )

    def _stays(self, name: str) -> None:
        self._leaving.pop(name, None)
        record = self._control.domains.find(name)
        if record is not None and record.leaving:
            record.leaving = False
            self._control.stand_in_line(name)
            self._control.wake_soon()

    def _hand_back(self, name: str, record: Domain | None, now: float) -> None:
        control, store = self._control, self._store
        entries = control.frontier.withdraw(name)
        for entry in entries:
            control.ledger.put(entry, State.PENDING)
            entry.request = None
        control.book.taken(name, -len(entries) - store.hand_back(name))
        control.turns.forget(name)
        if record is not None:
            self._tell(name, record, now)
        self._release(name)
        control.flush_soon()

    def _release(self, name: str) -> None:
        self._store.wishes.release.append(name)
        self._idle_since.pop(name, None)
        self._stays_until.pop(name, None)
        self._said.pop(name, None)
        self._rests.pop(name, None)
        self._unsaid.discard(name)

    # -- telling ---------------------------------------------------------------------------------

    def answered(self, domain: Domain) -> None:
        """*domain* answered, or did not: was something found that its next holder must know?"""
        if domain.governor.news != self._said.get(domain.name, NOTHING):
            self._unsaid.add(domain.name)

    def _note_progress(self, now: float) -> None:
        """A rest that goes down must not begin again with each holder: then nobody would ever try for more."""
        if now < self._progress_due:
            return
        self._progress_due = now + self._store.lease_s / 6
        for name in self._store.domains:
            record = self._control.domains.find(name)
            if record is not None and record.governor.pace is not None:
                rest_s = record.governor.rest_s
                if abs(rest_s - self._rests.get(name, math.inf)) >= 1.0:
                    self._unsaid.add(name)

    def _tell_news(self, now: float) -> None:
        """What the governors find outlives this worker, however it ends: it is said at once."""
        if not self._unsaid:
            return
        for name in self._unsaid & self._store.domains:
            record = self._control.domains.find(name)
            if record is not None:
                self._tell(name, record, now)
        self._unsaid.clear()

    def _tell(self, name: str, record: Domain, now: float) -> None:
        governor = record.governor
        if governor.forgettable(now) and governor.news == NOTHING:
            return
        self._said[name], self._rests[name] = governor.news, governor.rest_s
        kept = {key: _short(value) for key, value in governor.kept(now).items() if value}
        at = round(self._control.now_at())
        self._store.wishes.learned[name] = json.dumps({**kept, "at": at})


def _short(value: float) -> float | int:
    return value if isinstance(value, int) else float(f"{value:.5g}")

"""How the end of a request gets into the books: counted, kept or given up, and its children let go.

The rule it keeps: each lease is settled once, as exactly one of `Ending`'s kinds; its children become true in the same commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import letters, names
from .leases import Ending

if TYPE_CHECKING:
    from .control import Control
    from .leases import Lease
    from .ledger import Ledger
    from .stores.base import DeadLetter


class Settler:
    """Settles the leases of one crawl."""

    def __init__(self, *, control: Control, ledger: Ledger) -> None:
        self._control = control
        self._ledger = ledger

    def settle(self, lease: Lease) -> None:
        """Write down how *lease* ended, and let go of the children that waited for it."""
        self._write_down(lease)
        self._release(lease)

    def _write_down(self, lease: Lease) -> None:
        control = self._control
        if lease.cut:
            self._ledger.reopen(lease)
            return
        ending = lease.ending()
        dead: list[DeadLetter] = []
        if ending is Ending.PARSED:
            control.stats.inc_value(names.STAT_PARSED)
            control.book.parsed(lease.domain.name, now=control.now(), now_at=control.now_at())
            dead = control.graves.settled_letter(lease)
        elif ending is Ending.REPLACED:
            control.stats.inc_value(names.STAT_REPLACED)
            control.book.replaced(lease.domain.name)
        elif ending is Ending.SKIPPED and lease.failure is not None:
            reason = letters.skipped_because(lease.failure)
            control.stats.inc_value(names.STAT_SKIPPED % reason)
            control.book.left_out(lease.domain.name, reason)
            dead = control.graves.settled_letter(lease)
        elif control.stopping and lease.failure is None and lease.error is None:
            self._ledger.reopen(lease)  # cut short by the end of the crawl: it is pending again
            return
        else:
            dead = control.graves.letters_of(lease)
        if ending is not Ending.REPLACED:
            control.entry_ended(lease)
        self._ledger.settle(lease, dead)

    def _release(self, lease: Lease) -> None:
        """The held children of *lease* may go once its end is committed, and become true in the same commit."""
        control = self._control
        for entry in lease.children:
            control.book.taken(entry.domain)
            control.admit(entry, entry.delay_s)
        for domain, (count, priority, rank) in lease.held_on_disk.items():
            control.book.taken(domain, count)
            control.frontier.note_on_disk(domain, count, priority, rank)

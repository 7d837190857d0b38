"""Puts the counters of one moment together for the table of bottlenecks.

The rule it keeps: what the gauges and the readings both name is the same thing, and is copied by its name.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from .looks import rss_bytes
from .policy.bottleneck import Code, Readings
from .snapshot import Gauges

if TYPE_CHECKING:
    from .book import Book
    from .looks import CpuTime, Looks, Tape
    from .rounds import Round

OWN_HOLDS = frozenset({
    Code.PAUSED, Code.WRITER_BEHIND, Code.SINK_DOWN, Code.DISK_FULL, Code.STORE_UNREACHABLE,
    Code.NETWORK_DOWN, Code.NO_PROXY,
})  # fmt: skip
"""Codes under which nothing is asked because of us: such a time counts for no domain's rate."""
_SAME = tuple({field.name for field in fields(Gauges)} & {field.name for field in fields(Readings)})


class Reader:
    """Makes the readings of a crawl, second by second.

    Args:
        book, looks, tape, cpu: Where its numbers are.
        kept: What is left goes on at the next start.
        rss_limit_bytes: Memory at which the crawl is closed; 0: none.
    """

    def __init__(
        self,
        *,
        book: Book,
        looks: Looks,
        tape: Tape,
        cpu: CpuTime,
        kept: bool,
        rss_limit_bytes: int,
    ) -> None:
        self._book, self._looks, self._tape, self._cpu = book, looks, tape, cpu
        self._kept, self._rss_limit_bytes = kept, rss_limit_bytes
        self._free_rate = 0.0  # pages a second while results do not hold them up
        self._idle_since_at: float | None = None

    def read(
        self,
        now_at: float,
        now: float,
        gauges: Gauges,
        seen: Round,
        *,
        running_s: float,
        finish: tuple[str, bool] | None,
    ) -> Readings:
        """The readings of this moment; *finish*: how it ended, if it has, and whether complete."""
        book, looks, tape, g = self._book, self._looks, self._tape, gauges
        pending = g.pending_in_memory + g.pending_on_disk
        nothing = not (pending or g.leased or g.delayed)
        self._idle_since_at = (self._idle_since_at or now_at) if nothing else None
        results_share = looks.held_share("results")
        pages_per_s = tape.rate("got")
        if results_share == 0 and pages_per_s:
            self._free_rate += (pages_per_s - self._free_rate) / 20
        in_flight = looks.mean_in_flight()
        return Readings(
            now_at=now_at,
            running_s=running_s,
            asked=book.asked,
            pages=book.got,
            lost=book.dead,
            lost_items=book.dead_items,
            skipped=book.skipped,
            pending=pending,
            closed=finish is not None,
            complete=bool(finish and finish[1]),
            kept=self._kept,
            results_share=results_share,
            results_per_s=tape.rate("written"),
            pages_would_per_s=self._free_rate,
            backout_share=looks.backed_out_share(),
            cpu_share=self._cpu.share,
            lag_s=looks.lag_p99_s(),
            rss_bytes=rss_bytes(),
            rss_limit_bytes=self._rss_limit_bytes,
            in_flight_share=in_flight / g.max_in_flight if g.max_in_flight else 0.0,
            domains=book.domains,
            seed_wait_share=looks.gate_waits_share(),
            seeds_per_s=tape.rate("seeds"),
            idle_since_at=self._idle_since_at,
            **_of_domains(seen, now - book.held_s),
            **(_worst(book) if finish else {}),
            **{name: getattr(g, name) for name in _SAME},
        )


def _of_domains(seen: Round, now: float) -> dict[str, Any]:
    slow, held = seen.slowest, seen.held
    values: dict[str, Any] = {"blocked": seen.blocked, "growing": seen.growing}
    if slow is not None:
        values |= {
            "slowest": slow.name,
            "slowest_per_s": slow.goodput.per_s(now),
            "slowest_left_s": slow.left_s,
        }
    if held is not None:
        values |= {"held": held.name, "held_why": held.why, "held_until_at": held.next_at}
    if seen.crawl_delay is not None:
        values["crawl_delay_s"], values["crawl_delay_domain"] = seen.crawl_delay
    return values


def _worst(book: Book) -> dict[str, Any]:
    """Where most was lost."""
    worst = max(book.rows.values(), key=lambda row: row.dead, default=None)
    if worst is None or not worst.dead:
        return {}
    return {"lost_domain": worst.name, "lost_there": worst.dead}

"""What each constant of the law does: every one halved and doubled, on servers of each kind."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from ..law import LAW, Law
from .table import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .scenarios import Scenario

TELLING = (
    "bucket 50/s burst 10",
    "bucket 5/s burst 5, waits in seconds",
    "bucket 1/s burst 1",
    "5 in any second",
    "100 in 60 s",
    "step 50 > 10 > 50/s",
    "50/s and 2% refused at random",
    "4 at once, else 503",
    "2 workers of 0.3 s, timeout 1 s",
    "4 workers, heavy tail, timeout 5 s",
    "no limit, 2% 503 at random",
    "two crawlers on 50/s",
)
"""The scenarios that tell most: one of each kind of server, quick to run."""


@dataclasses.dataclass(frozen=True, slots=True)
class Effect:
    """Means over the scenarios, with a constant as it is, halved or doubled."""

    constant: str
    value: float
    goodput: float
    lost: float
    missed: int


def variants(law: Law = LAW) -> Iterator[tuple[str, float, Law]]:
    """The law itself, then each constant at half and at double.

    Of a constant between a half and one it is the distance to one that is halved and doubled.
    """
    yield "(as it is)", 1.0, law
    for field in dataclasses.fields(law):
        value = getattr(law, field.name)
        for factor in (0.5, 2.0):
            near_one = 0.5 < value < 1.0
            other = 1.0 - factor * (1.0 - value) if near_one else factor * value
            if isinstance(value, int):
                other = max(1, round(other))
            yield field.name, other, dataclasses.replace(law, **{field.name: other})


def effects(
    scenarios: Iterable[Scenario], *, draws: Iterable[Callable[[], Callable[[], float]]]
) -> Iterator[Effect]:
    """Measure every variant on all *scenarios*; *draws* makes a fresh generator for each run."""
    kept, makers = tuple(scenarios), tuple(draws)
    for name, value, law in variants():
        results = [run(s, draw=make(), law=law) for s in kept for make in makers]
        n = len(results)
        yield Effect(
            constant=name,
            value=value,
            goodput=sum(min(1.0, r.settled.goodput) for r in results) / n,
            lost=sum(r.settled.refused + r.settled.failed for r in results) / n,
            missed=sum(bool(r.misses()) for r in results),
        )

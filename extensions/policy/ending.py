"""How a crawl ended, as an exit code that a script can trust.

The rule it keeps: 0 means that nothing is missing. When several codes apply, the one that asks for
the most attention wins: 1, 2, 75, 4, 3.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .account import Account


class Exit(enum.IntEnum):
    """Exit codes of `scrapy crawl` and `scrapy runspider`."""

    COMPLETE = 0
    FAILED = 1  # could not start, or an internal error
    USAGE = 2  # wrong arguments
    INCOMPLETE = 3  # ran to its end, but something is lost
    STOPPED = 4  # ended early on purpose, the rest is kept
    TRY_AGAIN = 75  # ended early by trouble that may pass, the rest is kept (EX_TEMPFAIL)


_ATTENTION = (Exit.FAILED, Exit.USAGE, Exit.TRY_AGAIN, Exit.STOPPED, Exit.INCOMPLETE)


def worst(codes: Sequence[int]) -> int:
    """The code that asks for the most attention, for several spiders in one process."""
    return next((int(code) for code in _ATTENTION if code in codes), max(codes, default=0))


class Condition(NamedTuple):
    """One part of SLUICE_FAIL_ON: what is compared with which bound."""

    name: str  # lost, pages, skipped, refused
    above: bool
    bound: float
    percent: bool

    def __str__(self) -> str:
        """As it is written in the setting."""
        sign = ">" if self.above else "<"
        return f"{self.name}{sign}{self.bound:g}{'%' if self.percent else ''}"


_CONDITION = re.compile(r"(lost|pages|skipped|refused)\s*([<>])\s*(\d+(?:\.\d+)?)\s*(%?)")
ANY_LOSS = Condition("lost", above=True, bound=0, percent=False)


def fail_on(words: str | Sequence[str]) -> tuple[Condition, ...]:
    """Read SLUICE_FAIL_ON.

    Args:
        words: ``lost``, ``never``, ``lost>1%``, ``pages<1000``, ``refused>20%``; a list of
            these, or several with commas between.

    Raises:
        ValueError: What does not fit, and what would.
    """
    parts = words.split(",") if isinstance(words, str) else list(words)
    found = []
    for part in (str(part).strip() for part in parts):
        match = _CONDITION.fullmatch(part)
        if match:
            name, sign, bound, percent = match.groups()
            found.append(Condition(name, sign == ">", float(bound), bool(percent)))
        elif part == "lost":
            found.append(ANY_LOSS)
        elif part != "never" or len(parts) > 1:
            raise ValueError(
                f"SLUICE_FAIL_ON: {part!r} is not understood. Use 'lost', 'never', or comparisons "
                "like 'lost>1%', 'pages<1000', 'refused>20%', 'skipped>10%'; several in a list."
            )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What is known when a spider has closed.

    Attributes:
        reason: Scrapy's finish reason.
        account: The job's account.
        answers, refused: Answers of any kind, and those that were refusals.
        lost_items: Items that were given up.
        unwritten: Results that did not reach every sink.
        source_failed: The spider's `start()` raised.
        kept: What is left goes on at the next start.
    """

    reason: str
    account: Account
    answers: int = 0
    refused: int = 0
    lost_items: int = 0
    unwritten: int = 0
    source_failed: bool = False
    kept: bool = True

    @property
    def lost(self) -> int:
        """Requests and items given up."""
        return self.account.dead + self.lost_items

    @property
    def complete(self) -> bool:
        """Did every request end as page or skipped, and is every result written?"""
        return self.reason == "finished" and not (
            self.lost or self.account.left or self.unwritten or self.source_failed
        )

    @property
    def rest(self) -> str:
        """What becomes of the requests that are left, in words; nothing where none is or none is kept."""
        return "; the rest is kept" if self.kept and self.account.left else ""

    def holds(self, condition: Condition) -> bool:
        """Is the limit of *condition* passed?"""
        value, whole = {
            "lost": (self.lost, self.account.asked),
            "pages": (self.account.got, self.account.asked),
            "skipped": (self.account.skipped, self.account.asked),
            "refused": (self.refused, self.answers),
        }[condition.name]
        measured = 100 * value / whole if condition.percent and whole else float(value)
        if condition.percent and not whole:
            measured = 0.0
        return measured > condition.bound if condition.above else measured < condition.bound


# Reasons with which Sluice closes a crawl because of trouble that may pass.
TROUBLE = frozenset({"store_failed", "sink_gone", "redis_refused", "no_proxies"})
INTERNAL = frozenset({"scheduler_failed", "job_lost"})


def exit_code(ending: Ending, conditions: Sequence[Condition]) -> tuple[Exit, str]:
    """The code, and the rule that chose it in a few words."""
    if ending.reason in INTERNAL:
        return Exit.FAILED, f"closed with {ending.reason!r}"
    if ending.source_failed:
        return Exit.FAILED, "the spider's start() failed"
    if ending.reason in TROUBLE:
        return Exit.TRY_AGAIN, f"closed with {ending.reason!r}{ending.rest}; run it again"
    if ending.unwritten:
        return Exit.TRY_AGAIN, f"{ending.unwritten} results are kept, but not written yet"
    if ending.reason != "finished":
        return Exit.STOPPED, f"stopped with {ending.reason!r}{ending.rest}"
    for condition in conditions:
        if ending.holds(condition):
            shown = "lost" if condition == ANY_LOSS else str(condition)
            verdict = "complete, but not enough" if ending.complete else "incomplete"
            return Exit.INCOMPLETE, f'{verdict} (SLUICE_FAIL_ON = "{shown}")'
    if ending.complete:
        return Exit.COMPLETE, "complete"
    return Exit.COMPLETE, "incomplete, within SLUICE_FAIL_ON"

"""The form of a sentence: how long it may be, and what goes with it."""

from __future__ import annotations

from dataclasses import dataclass

from ..wording import fit

MAX_SENTENCE = 110
MAX_CLAUSE = 60


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is said, what follows from it, until when (wall-clock), and whom it names."""

    text: str
    hint: str = ""
    until_at: float | None = None
    domains: tuple[str, ...] = ()


def clause(text: str) -> str:
    """The first clause alone, in at most 60 characters."""
    return fit(text.partition(": ")[0].removesuffix("."), MAX_CLAUSE)

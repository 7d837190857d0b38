"""What the opening of a job gives. Apart from both ways to open one, since each is imported where it is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .distributed import Distributed
    from .stores.base import JobStore, Recovered


@dataclass(frozen=True, slots=True)
class Opened:
    """A job's store, and what it held."""

    store: JobStore
    durable: bool
    recovered: Recovered
    shared: Distributed | None = None

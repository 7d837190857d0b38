"""Which request's work is running right now.

A context variable is set inside `next_request`; every task that Scrapy starts for the request (middlewares, callback,
errback, pipelines, signals, media downloads) inherits it. So children and items find their parent without private API.
"""

from __future__ import annotations

from contextvars import ContextVar

_LEASE: ContextVar[int | None] = ContextVar("sluice_lease", default=None)


def current_lease() -> int | None:
    """Id of the leased request in whose context this code runs; None in `start()` and outside a crawl."""
    return _LEASE.get()


def enter_lease(lease_id: int | None) -> None:
    """Say that what runs from here on belongs to *lease_id*."""
    _LEASE.set(lease_id)

"""A Valkey server for each test, and the settings of a worker on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.shared.workers import WORKERS
from tests.valkey import ValkeyServer, valkey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_worker_stays() -> Iterator[None]:
    yield
    while WORKERS:
        WORKERS.pop().kill()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ValkeyServer]:
    with valkey(tmp_path / "valkey") as running:
        yield running


@pytest.fixture
def shared(server: ValkeyServer) -> dict[str, Any]:
    """Settings of a worker."""
    return {"SLUICE_FRONTIER": server.url, "SLUICE_LEASE_S": 2, "SLUICE_PROGRESS": False}

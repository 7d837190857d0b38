"""For pytest in Scrapy's tests: Sluice in the place of the stock components. See `scrapy_suite`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from scrapy.settings import default_settings

from extensions.contracts import MetaContract
from extensions.retry import RetryMiddleware

if TYPE_CHECKING:
    import pytest

default_settings.ADDONS = {"extensions.Addon": 300}
default_settings.SLUICE_RESULTS = ""
default_settings.SLUICE_DEAD_LETTERS = ""
default_settings.SLUICE_RETRY_BASE_S = 0.01  # the tests count retries, and should not wait for them


class Plain:
    """A request that was handed out, of which nothing particular is known."""

    def __getattr__(self, name: str) -> None:
        return None


class RetryInPlace(RetryMiddleware):
    """Ours, for requests that no scheduler has handed out: each counts as handed out and answered."""

    max_retry_times = property(
        lambda self: self._max_retry_times,
        lambda self, value: setattr(self, "_max_retry_times", value),
    )

    def _out(self, request: Any) -> Any:  # noqa: ARG002
        return Plain()


class MetaInPlace(MetaContract):
    """Ours."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """Exchange the classes that tests make themselves."""
    modules = {item.module for item in session.items}
    for module in modules:
        if module.__name__.endswith("test_downloadermiddleware_retry"):
            module.RetryMiddleware = RetryInPlace
        if module.__name__.endswith("test_contracts"):
            stock, module.MetadataContract = module.MetadataContract, MetaInPlace
            listed = module.TestContractsManager.contracts
            listed[listed.index(stock)] = MetaInPlace

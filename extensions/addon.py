"""The one line of `ADDONS` that switches Sluice on: it puts each part in its place, and yields to the user's own settings.

The rule it keeps: what the user set wins. Settings are set at the priority of add-ons, below the project's, the spider's and
the command line's.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from scrapy.downloadermiddlewares.retry import RetryMiddleware as StockRetryMiddleware
from scrapy.exceptions import NotConfigured
from scrapy.settings import SETTINGS_PRIORITIES

from .config import Config
from .conflicts import (
    other_retry_middleware,
    refuse_conflicts,
    refuse_missing_packages,
    take_over_from_scrapy_redis,
)
from .contracts import add_contracts, checking, prepare_check
from .control import Control
from .cutting import OutputCut
from .logformatter import LeanLogFormatter
from .overview import Overview
from .results import ResultsPipeline
from .retry import BanRetryMiddleware, RetryMiddleware
from .scheduler import Scheduler
from .startgate import StartGate
from .stats import DirectStatsCollector
from .throttle import ThrottleMiddleware
from .wrongvalues import refuse_unloadable, refuse_words

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

logger = logging.getLogger(__name__)

DEFAULTS: dict[str, Any] = {
    "LOG_FORMATTER": LeanLogFormatter,
    "STATS_CLASS": DirectStatsCollector,
    # Each response makes that many tasks, however few items it has; items wait in a bounded outbox, not here.
    "CONCURRENT_ITEMS": 4,
    # A site that fails is no error of the crawl's; monitors that count errors must not ring for it.
    "RETRY_GIVE_UP_LOG_LEVEL": "WARNING",
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
}
"""Settings that Sluice changes where the user has no say of their own."""


class Addon:
    """Switches Sluice on."""

    @classmethod
    def update_pre_crawler_settings(cls, settings: BaseSettings) -> None:
        """Make the contracts known: `scrapy check` reads them before there is a crawler."""
        add_contracts(settings)

    def update_settings(self, settings: BaseSettings) -> None:
        """Put the parts in their places.

        Raises:
            BadSetting: a setting of Sluice's that cannot be meant, or one of Scrapy's that cannot go with it.
        """
        if checking():
            prepare_check(settings)
        config = Config.from_settings(settings)
        if not config.enabled:
            raise NotConfigured
        refuse_words(settings)
        refuse_unloadable(settings)
        if config.frontier != "local":
            take_over_from_scrapy_redis(settings)
        refuse_conflicts(settings)
        refuse_missing_packages(config)
        for name, value in DEFAULTS.items():
            settings.set(name, value, priority="addon")
        settings.set(
            "SCHEDULER", Scheduler, priority=max(settings.getpriority("SCHEDULER") or 0, 15)
        )
        settings.setdefault_in_component_priority_dict("EXTENSIONS", Control, 0)
        settings.setdefault_in_component_priority_dict("EXTENSIONS", Overview, 900)
        place = settings.setdefault_in_component_priority_dict
        theirs = other_retry_middleware(settings)
        if theirs is None:
            place("DOWNLOADER_MIDDLEWARES", StockRetryMiddleware, None)
            place("DOWNLOADER_MIDDLEWARES", RetryMiddleware, 550)
        else:
            logger.info("%s decides on retries; Sluice's own is left to ban pages", theirs)
            place("DOWNLOADER_MIDDLEWARES", BanRetryMiddleware, 555)
        place("DOWNLOADER_MIDDLEWARES", ThrottleMiddleware, 560)
        # Next to the engine, so that it draws seeds last, after other middlewares' own process_start.
        place("SPIDER_MIDDLEWARES", StartGate, 10)
        place("SPIDER_MIDDLEWARES", OutputCut, 20)
        if config.results:
            place("ITEM_PIPELINES", ResultsPipeline, 900)
        if config.fast_handler:
            use_fast_handler(settings)


def use_fast_handler(settings: BaseSettings) -> None:
    """Put the fast handler in for every HTTP scheme that the user has given none for.

    By its path, so that aiohttp is imported only where it is used.
    """
    fast = f"{__package__}.handlers.FastDownloadHandler"
    handlers = {"http": fast, "https": fast, **settings.getdict("DOWNLOAD_HANDLERS")}
    own = settings.getpriority("DOWNLOAD_HANDLERS") or 0
    settings.set("DOWNLOAD_HANDLERS", handlers, max(own, SETTINGS_PRIORITIES["addon"]))

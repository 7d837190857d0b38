"""What cannot work together with Sluice is refused in one line, or yielded to by a rule that docs/adoption.md states.

The rule it keeps: two rulers over one thing do not work, and which of them rules is never left to chance.
"""

from __future__ import annotations

import errno
import logging
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.core.downloader import Downloader
from scrapy.downloadermiddlewares.retry import RetryMiddleware as StockRetryMiddleware
from scrapy.settings import default_settings
from scrapy.utils.misc import load_object
from twisted.internet.asyncioreactor import AsyncioSelectorReactor

from .config import BadSetting
from .scheduler import Scheduler
from .stores.sinks import is_database

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from .config import Config

logger = logging.getLogger(__name__)

STOCK_SCHEDULER = "scrapy.core.scheduler.Scheduler"


def take_over_from_scrapy_redis(settings: BaseSettings) -> None:
    """A project of scrapy-redis's moves over by SLUICE_FRONTIER alone: its scheduler and filter give way."""
    for name in ("SCHEDULER", "DUPEFILTER_CLASS"):
        if str(settings[name]).startswith("scrapy_redis."):
            stock = getattr(default_settings, name)
            settings.set(name, stock, priority=settings.getpriority(name) or "addon")


_MAY_PASS = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


def refuse_conflicts(settings: BaseSettings) -> None:
    """Refuse settings of Scrapy's that Sluice cannot go with.

    Raises:
        BadSetting: names the setting and what to do.
    """
    if settings.getbool("AUTOTHROTTLE_ENABLED"):
        raise BadSetting(
            "AUTOTHROTTLE_ENABLED",
            True,
            "set it to False: Sluice finds each domain's pace by itself",
        )
    for name in ("CONCURRENT_ITEMS", "CONCURRENT_REQUESTS", "CONCURRENT_REQUESTS_PER_DOMAIN"):
        if settings.getint(name) < 1:
            raise BadSetting(name, settings[name], "give at least 1: 0 would let nothing through")
    for name in ("DOWNLOAD_DELAY", "DOWNLOAD_TIMEOUT"):
        if settings.getfloat(name) < 0:
            raise BadSetting(name, settings[name], "give seconds, 0 or more")
    refuse_no_folder(settings)
    scheduler = load_object(settings["SCHEDULER"])
    # By its bases: for Scrapy's schedulers `issubclass` only asks for methods of the right names.
    if scheduler is not load_object(STOCK_SCHEDULER) and Scheduler not in scheduler.__mro__:
        raise BadSetting(
            "SCHEDULER",
            settings["SCHEDULER"],
            "remove it, or set SLUICE_ENABLED=False: Sluice is a scheduler",
        )
    if not issubclass(load_object(settings["DOWNLOADER"]), Downloader):
        raise BadSetting(
            "DOWNLOADER",
            settings["DOWNLOADER"],
            "remove it, or make it a subclass of Scrapy's Downloader (DOWNLOAD_HANDLERS may be any)",
        )
    refuse_other_reactors(settings)


def refuse_no_folder(settings: BaseSettings) -> None:
    """Make JOBDIR, or refuse one that cannot be a folder. A full or failing disk is no mistake: the store tells of it.

    Raises:
        BadSetting: names the folder and what is in the way.
    """
    jobdir = settings["JOBDIR"]
    if not jobdir:
        return
    try:
        Path(jobdir).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if error.errno in _MAY_PASS:
            return
        why = "a file is there" if isinstance(error, FileExistsError) else error.strerror
        remedy = f"give a folder; this one cannot be made: {why}"
        raise BadSetting("JOBDIR", str(jobdir), remedy) from None


def refuse_other_reactors(settings: BaseSettings) -> None:
    """Refuse a Twisted reactor that is not asyncio's; no reactor at all, only asyncio's loop, is fine.

    Raises:
        BadSetting: names the setting and what to do.
    """
    reactor = settings["TWISTED_REACTOR"]
    if not reactor or not settings.getbool("TWISTED_REACTOR_ENABLED"):
        return
    if not issubclass(load_object(reactor), AsyncioSelectorReactor):
        remedy = "remove it: Sluice needs Scrapy's default, the asyncio reactor"
        raise BadSetting("TWISTED_REACTOR", reactor, remedy)


def other_retry_middleware(settings: BaseSettings) -> str | None:
    """The retry middleware that the user has put in, Scrapy's own or a subclass of it; None: none."""
    for name, place in settings.getdict("DOWNLOADER_MIDDLEWARES").items():
        if place is not None and _is_retry(load_object(name)):
            return name if isinstance(name, str) else f"{name.__module__}.{name.__qualname__}"
    return None


def _is_retry(component: Any) -> bool:
    return isinstance(component, type) and issubclass(component, StockRetryMiddleware)


def refuse_missing_packages(config: Config) -> None:
    """Refuse what needs a package that is not installed; nothing else of Sluice asks for it.

    Raises:
        BadSetting: names the setting and the package.
    """
    wants = {
        "FRONTIER": (config.frontier, config.frontier != "local", "redis"),
        "RESULTS": (config.results, any(map(is_database, config.results)), "sqlalchemy"),
        "STATUS_PORT": (
            config.status_port,
            config.status_port is not None,
            "prometheus_client",
        ),
    }
    for name, (value, wanted, package) in wants.items():
        if wanted and find_spec(package) is None:
            install = package.replace("_", "-")
            raise BadSetting(f"SLUICE_{name}", value, f"needs a package: pip install {install}")

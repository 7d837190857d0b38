"""Values of Scrapy's own settings that nothing can be made of.

The rule it keeps: what Scrapy would end in a traceback over, at the start or in the middle of the crawl, is refused at the
start, by the setting's name and with what would do. What a module of the user's raises keeps its traceback.
"""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scrapy.settings import iter_default_settings

from .config import BadSetting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from scrapy.settings import BaseSettings

_FRACTIONS = {
    "AUTOTHROTTLE_MAX_DELAY",
    "AUTOTHROTTLE_START_DELAY",
    "CLOSESPIDER_TIMEOUT",
    "DNS_TIMEOUT",
    "DOWNLOAD_DELAY",
    "DOWNLOAD_DELAY_JITTER",
    "DOWNLOAD_TIMEOUT",
    "LOGSTATS_INTERVAL",
}
"""Seconds that Scrapy reads as fractions, though their defaults are whole."""

_CODES = ("HTTPCACHE_IGNORE_HTTP_CODES", "HTTPERROR_ALLOWED_CODES", "RETRY_HTTP_CODES")
_OBJECTS = (
    "ASYNCIO_EVENT_LOOP",
    "DOWNLOADER",
    "DUPEFILTER_CLASS",
    "LOG_FORMATTER",
    "REQUEST_FINGERPRINTER_CLASS",
    "SCHEDULER",
    "STATS_CLASS",
    "TWISTED_REACTOR",
)
_COMPONENTS = (
    "ADDONS",
    "DOWNLOADER_MIDDLEWARES",
    "EXTENSIONS",
    "ITEM_PIPELINES",
    "SPIDER_MIDDLEWARES",
)

_REMEDY = "give the name of one that is there"


def refuse_words(settings: BaseSettings) -> None:
    """Refuse words where Scrapy wants numbers, or True or False.

    Raises:
        BadSetting: names the setting and its value.
    """
    for name, default in iter_default_settings():
        if type(default) is bool:
            _refuse_no_flag(settings, name)
        if type(default) not in {int, float} or name.endswith("_ENABLED"):
            continue
        value = settings.get(name)  # not of each: reading a deprecated one warns
        read = float if type(default) is float or name in _FRACTIONS else int
        try:
            read(default if value is None else value)
        except (TypeError, ValueError):
            kind = "number" if read is float else "whole number"
            raise BadSetting(name, value, f"give a {kind}, for example {default}") from None
    for name in _CODES:
        try:
            list(map(int, settings.getlist(name)))
        except (TypeError, ValueError):
            remedy = "give HTTP statuses, for example 500,503"
            raise BadSetting(name, settings[name], remedy) from None


def refuse_unloadable(settings: BaseSettings) -> None:
    """Refuse classes that are not there, in settings that Scrapy loads for each crawl.

    Raises:
        BadSetting: names the setting and the class.
    """
    for name in (*_OBJECTS, *_COMPONENTS):
        for path in _paths(settings, name):
            _refuse_missing(name, path)


def refuse_before_logging(settings: BaseSettings) -> None:
    """Refuse what Scrapy reads before it can log anything.

    Raises:
        BadSetting: names the setting and its value.
    """
    for name, default in iter_default_settings():
        if type(default) is bool:
            _refuse_no_flag(settings, name)
    level = settings["LOG_LEVEL"]
    known = logging.getLevelNamesMapping()
    if not isinstance(level, int) and level not in known:
        raise BadSetting("LOG_LEVEL", level, "give one of " + ", ".join(known))
    _refuse_log_file(settings)
    for name in ("ADDONS", "ASYNCIO_EVENT_LOOP"):
        for path in _paths(settings, name):
            _refuse_missing(name, path)
    for module in settings.getlist("SPIDER_MODULES"):
        _import("SPIDER_MODULES", module, module)


def _refuse_no_flag(settings: BaseSettings, name: str) -> None:
    try:
        settings.getbool(name)
    except ValueError:
        raise BadSetting(name, settings[name], "give True or False") from None


def _refuse_log_file(settings: BaseSettings) -> None:
    file, encoding = settings["LOG_FILE"], settings["LOG_ENCODING"]
    try:
        logging.Formatter(fmt=settings["LOG_FORMAT"], datefmt=settings["LOG_DATEFORMAT"])
    except ValueError as error:
        raise BadSetting("LOG_FORMAT", settings["LOG_FORMAT"], str(error)) from None
    if not file:
        return
    try:
        with Path(file).open("a", encoding=encoding):
            pass
    except LookupError:
        raise BadSetting("LOG_ENCODING", encoding, "give an encoding, such as utf-8") from None
    except OSError as error:
        remedy = f"give a file in a folder that is there: {error.strerror}"
        raise BadSetting("LOG_FILE", str(file), remedy) from None


def _paths(settings: BaseSettings, name: str) -> Iterator[Any]:
    """What the user has set *name* to."""
    if not settings.getpriority(name):
        return
    if name in _OBJECTS:
        if settings[name]:
            yield settings[name]
        return
    for path, place in settings.getdict(name).items():
        if place is not None:
            yield path


def _refuse_missing(name: str, path: Any) -> None:
    """Refuse *path* if it is not there. Errors within its module are not its setting's fault, and pass."""
    if not isinstance(path, str):
        return
    module, _, attribute = path.rpartition(".")
    missing = ""
    if not module:
        missing = "this is no path"
    elif not hasattr(_import(name, path, module), attribute):
        missing = f"there is no {attribute} in {module}"
    if missing:
        raise BadSetting(name, path, f"{missing}; {_REMEDY}")


def _import(name: str, value: str, module: str) -> ModuleType:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise BadSetting(name, value, f"there is no module {error.name}; {_REMEDY}") from None

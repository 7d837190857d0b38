"""Where dead letters are: in a file for each spider, or, for workers that share a frontier, in Redis.

The rule it keeps: workers that share a crawl share what it gave up, unless the user says otherwise.
"""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from .config import DEAD_LETTERS, REDIS_SCHEMES, BadSetting
from .stores.deadletter_rows import path_for
from .stores.deadletters import DeadLetterFile

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

    from .config import Config
    from .redissettings import RedisSettings
    from .stores.deadletter_store import DeadLetters


def shared_at(config: Config) -> str | None:
    """``redis`` or the URL of the Redis that has the dead letters; None where they are in files, or nowhere."""
    target = config.dead_letters
    if target is None:
        return None
    if target == "redis" or target.startswith(REDIS_SCHEMES):
        return target
    if target == DEAD_LETTERS and config.frontier != "local":
        return config.frontier
    return None


def watched_key(settings: BaseSettings, config: Config, spider: str) -> str | None:
    """The key of dead letters that lie beside the frontier, so that one look is for both."""
    at = shared_at(config)
    if at is None or at != config.frontier:
        return None
    return _where(settings, config, spider, at).letters_key


def place_of(settings: BaseSettings, config: Config, spider: str) -> DeadLetters | None:
    """The dead letters of *spider*; None where none are kept.

    Raises:
        BadSetting: a setting of scrapy-redis's that cannot be meant.
    """
    if config.dead_letters is None:
        return None
    at = shared_at(config)
    if at is None:
        return DeadLetterFile(path_for(config.dead_letters, spider))
    where = _where(settings, config, spider, at)
    return _in_redis(where, where.letters_key, config)


def places(
    settings: BaseSettings, config: Config, *, spider: str | None, redis: str | None
) -> list[DeadLetters]:
    """All that there are, or those of *spider*; in *redis* (``redis`` or a URL) where that is given.

    Raises:
        BadSetting: there is no such place.
        DeadLetterError: Redis does not answer.
    """
    at = redis or shared_at(config)
    if at is not None:
        where = _where(settings, config, spider or "*", at)
        return [_in_redis(where, key, config) for key in _keys(where, spider)]
    target = config.dead_letters
    if target is None:
        raise BadSetting("SLUICE_DEAD_LETTERS", "", "there are no dead letters: name a file")
    if spider is not None:
        paths = [path] if (path := path_for(target, spider)).exists() else []
    else:
        pattern = str(path_for(glob.escape(target), "*"))
        paths = [Path(path) for path in sorted(glob.glob(pattern))]  # noqa: PTH207
    return [DeadLetterFile(path) for path in paths]


def _where(settings: BaseSettings, config: Config, spider: str, at: str) -> RedisSettings:
    # Redis's client is a fifth of what Sluice adds to the start of a process.
    from .redissettings import RedisSettings  # noqa: PLC0415

    return RedisSettings.from_settings(
        settings, spider=spider, frontier=at, letters_key=config.dead_letters_key
    )


def _in_redis(where: RedisSettings, key: str, config: Config) -> DeadLetters:
    from .stores.redisletters import RedisDeadLetters  # noqa: PLC0415

    return RedisDeadLetters(
        client=where.blocking_client(),
        key=key,
        place=f"{where.place}, {key}",
        most=config.dead_letters_most,
    )


def _keys(where: RedisSettings, spider: str | None) -> list[str]:
    from .stores.redisletters import keys_of_all  # noqa: PLC0415

    with where.blocking_client() as client:
        known = keys_of_all(client, place=where.place)
    return known if spider is None else [key for key in known if key == where.letters_key]

"""scrapy-redis's settings, read once: where Redis is, and under which keys the crawl lies there.

The rule it keeps: what scrapy-redis takes is taken here too, or refused by name. A project moves over by one setting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from redis import Redis as BlockingRedis
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.retry import Retry as BlockingRetry
from redis.sentinel import Sentinel as BlockingSentinel

from .config import REDIS_SCHEMES, BadSetting
from .policy.redact import redact_url

if TYPE_CHECKING:
    from scrapy.settings import BaseSettings

TIMEOUT_S = 10.0
"""For an answer, where REDIS_PARAMS gives no `socket_timeout`: longer than a slow link, shorter than a lease."""
_OURS = ("encoding", "decode_responses", "retry_on_timeout", "retry")
"""Of REDIS_PARAMS: this program reads bytes, and tries again by its own rules."""
_COMMON: Final = {
    "socket_timeout": TIMEOUT_S,
    "socket_connect_timeout": TIMEOUT_S,
    "client_name": "sluice",
}


@dataclass(frozen=True, slots=True)
class RedisSettings:
    """Where a shared crawl is.

    Attributes:
        url: None: `params` say it.
        params: For redis-py.
        requests_key, dupefilter_key: With the spider's name in them.
        persist: Keep the job after its end.
        flush_on_start: Forget what an earlier crawl has left.
        letters_key: Of the dead letters of all workers.
    """

    url: str | None
    params: dict[str, Any]
    requests_key: str
    dupefilter_key: str
    persist: bool
    flush_on_start: bool
    letters_key: str

    @classmethod
    def from_settings(
        cls,
        settings: BaseSettings,
        *,
        spider: str,
        frontier: str,
        letters_key: str = "%(spider)s:deadletters",
    ) -> Self:
        """Read them.

        Args:
            settings: The crawl's.
            spider: Name of the spider.
            frontier: SLUICE_FRONTIER: ``redis``, or a URL that wins over REDIS_URL.
            letters_key: SLUICE_DEAD_LETTERS_KEY.

        Raises:
            BadSetting: one that cannot be meant, or that only a blocking client could do.
        """
        params = dict(settings.getdict("REDIS_PARAMS"))
        if "redis_cls" in params:
            raise BadSetting(
                "REDIS_PARAMS",
                params["redis_cls"],
                "remove redis_cls: the client here is redis.asyncio's. For sentinels give"
                " sentinels=[(host, port), ...] and service_name",
            )
        for name in _OURS:
            params.pop(name, None)
        for name in ("HOST", "PORT", "DB"):
            if settings.get(f"REDIS_{name}"):
                params[name.lower()] = settings[f"REDIS_{name}"]
        url = frontier if frontier.startswith(REDIS_SCHEMES) else settings.get("REDIS_URL")
        url = params.pop("url", None) if url is None else url
        keys = {"spider": spider, "name": spider}
        return cls(
            url=url,
            params=params,
            requests_key=_key(
                "SCHEDULER_QUEUE_KEY", settings.get("SCHEDULER_QUEUE_KEY"), "requests", keys
            ),
            dupefilter_key=_key(
                "SCHEDULER_DUPEFILTER_KEY",
                settings.get("SCHEDULER_DUPEFILTER_KEY"),
                "dupefilter",
                keys,
            ),
            letters_key=_key("SLUICE_DEAD_LETTERS_KEY", letters_key, "deadletters", keys),
            persist=settings.getbool("SCHEDULER_PERSIST"),
            flush_on_start=settings.getbool("SCHEDULER_FLUSH_ON_START"),
        )

    def client(self) -> Redis:
        """A client, not yet connected."""
        made: Redis = self._made(Redis, Sentinel, Retry)
        return made

    def blocking_client(self) -> BlockingRedis:
        """The same for threads and commands."""
        made: BlockingRedis = self._made(BlockingRedis, BlockingSentinel, BlockingRetry)
        return made

    def _made(self, client: Any, sentinel: Any, retry: Any) -> Any:
        """A client of redis-py's asynchronous classes, or of its blocking ones, which are made alike."""
        params = {"retry": retry(NoBackoff(), 0), **_COMMON, **self.params}
        if "sentinels" in params:
            sentinels, service = params.pop("sentinels"), params.pop("service_name", "mymaster")
            return sentinel(sentinels, **params).master_for(service)
        return client(**params) if self.url is None else client.from_url(self.url, **params)

    @property
    def place(self) -> str:
        """Which server that is, for messages: without user, password and options."""
        if "sentinels" in self.params:
            return f"redis-sentinel {self.params.get('service_name', 'mymaster')}"
        if self.url is not None:
            return redact_url(self.url).partition("?")[0]
        host, port = self.params.get("host", "localhost"), self.params.get("port", 6379)
        return f"redis://{host}:{port}/{self.params.get('db', 0)}"


def _key(name: str, pattern: Any, usual: str, values: dict[str, str]) -> str:
    try:
        return str(pattern or f"%(spider)s:{usual}") % values
    except (KeyError, ValueError, TypeError) as error:
        raise BadSetting(name, pattern, f"only %(spider)s may stand in it ({error})") from None

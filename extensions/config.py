"""Every setting of Sluice, read once into typed values. The tables in docs/settings.md are checked against this.

The rule it keeps: an impossible value is refused at the start, by name, with what would do; an unknown `SLUICE_*` name is
refused with the nearest known one, since a typing error must not switch a guarantee off in silence.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Self

from .commandline import run_by_scrapyd
from .policy.ending import fail_on
from .policy.proxies import read_proxies
from .policy.redact import redact_url
from .proxylist import ListPlace, place_of
from .stores.sinks import check_target

if TYPE_CHECKING:
    from collections.abc import Callable

    from scrapy.settings import BaseSettings

from .policy.bans import KNOWN_TITLES

PREFIX = "SLUICE_"
DEAD_LETTERS = "deadletters/%(spider)s.sqlite"
REDIS_SCHEMES = ("redis://", "rediss://", "unix://")

RESULTS_UNDER_SCRAPYD = "results/%(spider)s/%(job)s.jsonl"
"""Instead of the default: jobs of one spider run side by side there, and a file has one writer."""


class BadSetting(ValueError):
    """A setting that cannot be meant: names it, its value and what would do."""

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f"{name}={value!r}: {remedy}")


def _number(minimum: float, maximum: float = math.inf) -> Callable[[str, Any], float]:
    def read(name: str, value: Any) -> float:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise BadSetting(name, value, "give a number") from None
        if not minimum <= number <= maximum:
            bounds = f"at least {minimum:g}" + (
                f", at most {maximum:g}" if maximum < math.inf else ""
            )
            raise BadSetting(name, value, f"give a number of {bounds}")
        return number

    return read


def _whole(minimum: int) -> Callable[[str, Any], int]:
    def read(name: str, value: Any) -> int:
        number = _number(minimum)(name, value)
        if number == math.inf or number != int(number):
            raise BadSetting(name, value, "give a whole number")
        return int(number)

    return read


def _whole_or_auto(name: str, value: Any) -> int | None:
    if value is None or str(value).strip().lower() == "auto":
        return None
    try:
        return _whole(1)(name, value)
    except BadSetting:
        raise BadSetting(name, value, "give auto, or a whole number of at least 1") from None


def _flag(name: str, value: Any) -> bool:
    text = str(value).strip().lower()
    if text in {"1", "true", "yes", "on"}:
        return True
    if text in {"0", "false", "no", "off", "none", ""}:
        return False
    raise BadSetting(name, value, "give True or False")


def _text_or_none(_: str, value: Any) -> str | None:
    text = "" if value is None else str(value).strip()
    return None if text.lower() in {"", "none", "off", "false", "0"} else text


def _text(name: str, value: Any) -> str:
    text = str(value).strip()
    if not text:
        raise BadSetting(name, value, "give a name")
    return text


def _port_or_off(name: str, value: Any) -> int | None:
    text = "" if value is None else str(value).strip().lower()
    if text in {"", "none", "off", "false"}:
        return None
    return int(_number(0, 65535)(name, value))


def _conditions(name: str, value: Any) -> tuple[str, ...]:
    words = tuple(str(v) for v in value) if isinstance(value, (list, tuple)) else (str(value),)
    parts = tuple(part.strip() for word in words for part in word.split(","))
    try:
        fail_on(parts)
    except ValueError as error:
        raise BadSetting(name, value, str(error).partition("understood. ")[2]) from None
    return parts


def _targets(name: str, value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        targets = [str(v).strip() for v in value]
    else:
        targets = [part.strip() for part in (_text_or_none(name, value) or "").split(",")]
    targets = [target for target in targets if target]
    for target in targets:
        try:
            check_target(target)
        except ValueError as error:
            raise BadSetting(name, redact_url(target), str(error)) from None
    return tuple(targets)


def _listed(value: Any) -> list[str]:
    values = value if isinstance(value, (list, tuple)) else str(value or "").split(",")
    return [str(v).strip() for v in values if str(v).strip()]


def _statuses(name: str, value: Any) -> tuple[int, ...]:
    texts = _listed(value)
    if not all(text.isascii() and text.isdigit() and len(text) == 3 for text in texts):  # noqa: PLR2004
        raise BadSetting(name, value, "give HTTP statuses, such as 403 or a list of them")
    return tuple(map(int, texts))


def _expressions(name: str, value: Any) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) and value else _listed(value)
    for text in texts:
        try:
            re.compile(text)
        except re.error as error:
            raise BadSetting(name, text, f"broken regular expression: {error}") from None
    return tuple(texts)


def _frontier(name: str, value: Any) -> str:
    text = str(value).strip()
    if text.lower() in {"local", "redis"}:
        return text.lower()
    if not text.startswith(REDIS_SCHEMES):
        raise BadSetting(name, value, "give local, redis, or a redis:// URL")
    return text


def _choice(*words: str) -> Callable[[str, Any], str]:
    def read(name: str, value: Any) -> str:
        text = str(value).strip().lower()
        if text not in words:
            raise BadSetting(name, value, "give one of " + ", ".join(words))
        return text

    return read


def _proxies(name: str, value: Any) -> ListPlace | None:
    place = place_of(value)
    if place is not None and place.kind == "lines":
        _, wrong = read_proxies(place.lines)
        if wrong:
            raise BadSetting(name, "...", wrong[0])
    return place


def setting(default: Any, read: Callable[[str, Any], Any], doc: str) -> Any:
    """One field of `Config`: its default as a user would write it, its reader, and what it does."""
    return field(metadata={"default": default, "read": read, "doc": doc})


@dataclass(frozen=True, slots=True)
class Config:
    """Sluice's own settings. A field `max_pending` is the setting `SLUICE_MAX_PENDING`."""

    enabled: bool = setting(True, _flag, "Switches all of Sluice on or off.")
    max_pending: int | None = setting(
        "auto",
        _whole_or_auto,
        "Seeds wait while so many requests are pending. `auto` sizes it to three minutes of measured work, 500 to 20,000.",
    )
    memory_window: int = setting(
        1000,
        _whole(1),
        "Pending requests kept live in memory; the others wait in the job store on disk.",
    )
    max_pending_on_disk: int = setting(
        10_000_000,
        _whole(1),
        "Requests over this number become dead letters with the reason `overflow`.",
    )
    flush_interval_s: float = setting(
        0.05, _number(0.001, 10), "Seconds between two commits of the job store."
    )
    results: tuple[str, ...] = setting(
        "results/%(spider)s.jsonl",
        _targets,
        "Where items go: a `.jsonl` or `.sqlite` path, a database URL, or a list of them. Empty: nowhere. `%(job)s` is "
        "the name of the folder JOBDIR. Scrapyd's jobs: `results/%(spider)s/%(job)s.jsonl`.",
    )
    results_table: str = setting(
        "results", _text, "Table for results in a database; may carry a schema (`crawl.results`)."
    )
    results_bound: int = setting(
        5000, _whole(1), "Results that may wait for a slow writer before fetching pauses."
    )
    sink_patience_s: float = setting(
        3600.0,
        _number(1),
        "A results sink that is down for so long closes the crawl (`sink_gone`); what it has not got is kept in JOBDIR.",
    )
    dead_letters: str | None = setting(
        DEAD_LETTERS,
        _text_or_none,
        "The dead-letter file; or `redis`, or a `redis://` URL, for all workers together, which a shared frontier makes the"
        " default. Empty: given-up requests are only counted and logged.",
    )
    dead_letters_key: str = setting(
        "%(spider)s:deadletters", _text, "Under which key of Redis shared dead letters are."
    )
    dead_letters_most: int = setting(
        100_000, _whole(1), "Shared dead letters over this number push the oldest out."
    )
    dead_letters_handled: bool = setting(
        True, _flag, "Keep a dead letter also where the spider's errback handled the failure."
    )
    retry_base_s: float = setting(
        2.0,
        _number(0),
        "First retry delay; it doubles with each retry, and each is drawn from 0 to that (full jitter).",
    )
    retry_cap_s: float = setting(300.0, _number(0), "Longest retry delay.")
    retry_budget: float = setting(
        0.2,
        _number(0, 1),
        "Share of a domain's traffic that retries may be; those over it are postponed, not dropped.",
    )
    give_up_after_s: float = setting(
        900.0,
        _number(1),
        "A domain that refuses every request for so long sends its requests to the dead letters."
        " While the network of this machine is out, no time passes.",
    )
    max_retry_after_s: float = setting(
        3600.0,
        _number(1),
        "Longest `Retry-After` that is waited for. A domain that asks for more is parked: its requests become dead letters.",
    )
    max_refusals: int = setting(
        50,
        _whole(1),
        "Refused answers (429, bans) that one request may get before it becomes a dead letter.",
    )
    max_repeats: int = setting(
        100,
        _whole(1),
        "How often in a row a callback may ask for its own URL again with dont_filter.",
    )
    stop_timeout_s: float = setting(
        30.0,
        _number(0),
        "How long a crawl that is asked to stop waits for requests in flight and running callbacks.",
    )
    unstorable: str = setting(
        "memory",
        _choice("memory", "dead-letter"),
        "What happens to a request that cannot be stored (lambda, live object): kept in memory only, or made a dead letter.",
    )
    ban_statuses: tuple[int, ...] = setting(
        (),
        _statuses,
        "HTTP statuses that are bans: the page is retried later, slower, and never reaches a callback.",
    )
    ban_titles: tuple[str, ...] = setting(
        KNOWN_TITLES, _expressions, "Regular expressions; a page whose title matches one is a ban."
    )
    ban_patterns: tuple[str, ...] = setting(
        (),
        _expressions,
        "Regular expressions; a page whose first 20,000 characters match one is a ban.",
    )
    frontier: str = setting(
        "local",
        _frontier,
        "Where pending requests are: `local` (a file of this process); `redis` or a `redis://` URL: shared by many workers.",
    )
    workers_per_domain: int = setting(
        1, _whole(1), "Workers of a shared frontier that may ask one domain at the same time."
    )
    lease_s: float = setting(
        30.0,
        _number(0.5),
        "A worker of a shared frontier that is silent for so long is taken for dead; others go on with its requests.",
    )
    learned: str | None = setting(
        None,
        _text_or_none,
        "A file in which all crawls of the project keep what they found of domains' limits; a job with JOBDIR does so anyway.",
    )
    fast_handler: bool = setting(
        False,
        _flag,
        "Download `http` and `https` through aiohttp: about a fifth less work a page; needs no other change.",
    )
    proxies: ListPlace | None = setting(  # noqa: RUF009 - as all others; it is frozen
        None,
        _proxies,
        "Proxies for all requests: a list of them, a file or an address with one a line. See [proxies](proxies.md).",
    )
    limit_by: str = setting(
        "both",
        _choice("target", "proxy", "both"),
        "Whose limits hold with proxies: the host's (`target`), the host's for each proxy (`proxy`), "
        "or the host's and each proxy's own (`both`).",
    )
    proxy_concurrency: int = setting(
        8,
        _whole(1),
        "Most requests at once through one proxy, all domains together; one that fails under load gets fewer.",
    )
    proxy_ban_s: float = setting(
        60.0,
        _number(0.01),
        "How long a proxy rests for a domain that has banned it; twice as long for each ban in a row, up to an hour.",
    )
    proxy_refresh_s: float = setting(
        60.0, _number(1), "How often a list of proxies at an address is read again."
    )
    proxy_direct: bool = setting(
        False, _flag, "Ask directly while no proxy is healthy, instead of waiting for one."
    )
    crawl_delay: bool = setting(True, _flag, "Obey `Crawl-delay` and `Request-rate` of robots.txt.")
    fail_on: tuple[str, ...] = setting(
        "lost",
        _conditions,
        "What makes the exit code 3: `lost`, `never`, or comparisons like `lost>1%`, `pages<1000`, `refused>20%`.",
    )
    progress: bool = setting(
        True,
        _flag,
        "A live display where standard error is a terminal; elsewhere one line a minute.",
    )
    status_port: int | None = setting(
        "off",
        _port_or_off,
        "Port of the status page and the metrics; 0 takes any free one, a taken one the next free one.",
    )
    status_host: str = setting(
        "127.0.0.1",
        lambda _, value: str(value).strip(),
        "Address the status page listens on. The page shows URLs: keep it on loopback.",
    )
    status_token: str | None = setting(
        "off",
        _text_or_none,
        "Whoever has this token may pause, resume and stop on the status page. Without one nobody may.",
    )
    replay_only: bool = setting(
        False,
        _flag,
        "Only requested dead letters are crawled, `start()` is not read. Set by `scrapy deadletters replay`.",
    )

    @classmethod
    def from_settings(cls, settings: BaseSettings) -> Self:
        """Read and check all.

        Raises:
            BadSetting: a value that cannot be meant, or an unknown `SLUICE_*` name.
        """
        known = {PREFIX + f.name.upper(): f for f in fields(cls)}
        for name in settings:
            if str(name).startswith(PREFIX) and name not in known:
                near = difflib.get_close_matches(str(name), known, n=1)
                hint = f"did you mean {near[0]}?" if near else "see docs/settings.md for the names"
                raise BadSetting(str(name), settings.get(name), f"no such setting; {hint}")
        values = {
            f.name: f.metadata["read"](name, settings.get(name, f.metadata["default"]))
            for name, f in known.items()
        }
        if run_by_scrapyd() and settings.get("SLUICE_RESULTS") is None:
            values["results"] = (RESULTS_UNDER_SCRAPYD,)
        if values["retry_cap_s"] < values["retry_base_s"]:
            raise BadSetting(
                "SLUICE_RETRY_CAP_S", values["retry_cap_s"], "give at least SLUICE_RETRY_BASE_S"
            )
        proxies = values["proxies"]
        if proxies is not None and not values["fast_handler"]:
            refuse_tls_proxies(proxies)
            values["proxies"] = replace(proxies, tls=False)
        return cls(**values)


def refuse_tls_proxies(place: ListPlace) -> None:
    """Refuse what Scrapy's own download handler cannot do.

    Raises:
        BadSetting: with what can.
    """
    if any(line.strip().lower().startswith("https://") for line in place.lines):
        raise BadSetting(
            "SLUICE_PROXIES", "https://...", "https:// proxies need SLUICE_FAST_HANDLER=True"
        )

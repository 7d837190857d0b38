"""One life of a crawl: `python -m tests.chaos.child ORDER`, told by JSON what to do.

It is the project's own crawl with the project's settings. To die at a named point, this process
(and nothing of the project) wraps the function at that point and sends itself SIGKILL there.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from scrapy.crawler import CrawlerProcess
from scrapy.utils.project import get_project_settings

if TYPE_CHECKING:
    from collections.abc import Callable


def die() -> None:
    """End as if the machine's memory had run out: nothing is flushed, no handler runs."""
    os.kill(os.getpid(), signal.SIGKILL)


def wrap(owner: Any, name: str, nth: int, *, before: bool) -> None:
    """Die at the *nth* call of *owner*.*name*, before it or after it."""
    function: Callable[..., Any] = getattr(owner, name)
    calls = 0

    @functools.wraps(function)
    def deadly(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if before and calls == nth:
            die()
        result = function(*args, **kwargs)
        if calls == nth:
            die()
        return result

    setattr(owner, name, deadly)


def tear_a_line(nth: int) -> None:
    """Die with half of a line written to the JSON Lines file."""
    from extensions.stores.sinks.jsonl import JsonLinesSink  # noqa: PLC0415

    append = JsonLinesSink._append
    calls = 0

    def torn(self: JsonLinesSink, lines: list[bytes]) -> None:
        nonlocal calls
        calls += 1
        if calls == nth:
            append(self, [*lines[:-1], lines[-1][: len(lines[-1]) // 2]])
            die()
        append(self, lines)

    JsonLinesSink._append = torn  # type: ignore[method-assign]


def arm(point: str, nth: int) -> None:
    """Prepare the death at *point*, the *nth* time that the crawl comes there."""
    from extensions.dispatch import Dispatch  # noqa: PLC0415
    from extensions.stores.sinks.jsonl import JsonLinesSink  # noqa: PLC0415
    from extensions.stores.sqlite import SqliteJobStore  # noqa: PLC0415
    from extensions.stores.sqlitechanges import Changes  # noqa: PLC0415
    from extensions.stores.sqliterows import Tally  # noqa: PLC0415

    points: dict[str, Callable[[], None]] = {
        "popped, not leased": lambda: wrap(Dispatch, "_lease", nth, before=True),
        "leased, not committed": lambda: wrap(Dispatch, "_lease", nth, before=False),
        "before a commit": lambda: wrap(SqliteJobStore, "commit", nth, before=True),
        "half of a batch": lambda: wrap(Changes, "_insert", nth, before=False),
        "before COMMIT": lambda: wrap(Tally, "write", nth, before=False),
        "committed": lambda: wrap(SqliteJobStore, "commit", nth, before=False),
        "in a refill": lambda: wrap(SqliteJobStore, "refill", nth, before=False),
        "half a line": lambda: tear_a_line(nth),
        "written, not marked": lambda: wrap(JsonLinesSink, "write", nth, before=False),
        "marked, not forgotten": lambda: wrap(SqliteJobStore, "forget_items", nth, before=True),
        "at the checkpoint": lambda: wrap(SqliteJobStore, "checkpoint", nth, before=True),
        "at the end": lambda: wrap(SqliteJobStore, "close", nth, before=True),
    }
    points[point]()


def main() -> None:
    """Read what to do, do it, and say how it ended."""
    order = json.loads(sys.argv[1])
    settings = get_project_settings()
    settings.setdict(order["settings"], priority="cmdline")
    if order.get("point"):
        arm(order["point"], order["nth"])
    process = CrawlerProcess(settings)
    module, _, name = order["spider"].rpartition(":")
    spider = getattr(importlib.import_module(module), name) if module else name
    crawler = process.create_crawler(spider)
    process.crawl(crawler, **order["arguments"])
    process.start()
    stats = crawler.stats.get_stats() if crawler.stats else {}
    print(json.dumps(stats, default=str))


if __name__ == "__main__":
    main()

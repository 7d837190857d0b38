"""Where a job's store is: in JOBDIR, or in a nameless temporary file that vanishes with the process."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.utils.job import job_dir

from . import names
from .commandline import leaves_no_trace
from .deadletterpost import POLL_S, WATCHED_POLL_S, DeadLetterPost, PostHooks
from .lane import LINGER_S
from .letterplaces import place_of, watched_key
from .opened import Opened
from .spiderargs import spider_arguments
from .stores.base import StoreBroken
from .stores.sinks import SinkGone, make_sinks
from .stores.sqlite import SqliteJobStore
from .writer import ResultsWriter, WriterHooks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .control import Control
    from .ledger import Ledger
    from .stores.deadletter_rows import Row

STORE_NAME = "job.sqlite"
STOCK_QUEUE = "requests.queue"
"""What Scrapy's own scheduler leaves in JOBDIR."""


async def open_frontier(control: Control, folder: str | None) -> Opened:
    """Open the job: a file of this process's own, or, with SLUICE_FRONTIER, Redis.

    Raises:
        StoreError: it cannot be used; the message says what would do.
        BadSetting: a setting of scrapy-redis's that cannot be meant.
    """
    if control.config.frontier == "local" or leaves_no_trace():
        return open_store(folder, spider=control.spider.name)
    # Redis's client is a fifth of what Sluice adds to the start of a process.
    from .joining import open_shared  # noqa: PLC0415

    return await open_shared(control)


def open_store(folder: str | None, *, spider: str) -> Opened:
    """Open the store in *folder*; without one, or during `scrapy check`, a temporary one.

    Raises:
        StoreError: the folder's store cannot be used; the message names it and the remedy.
    """
    durable = folder is not None and not leaves_no_trace()
    path = Path(folder) / STORE_NAME if durable and folder is not None else None
    if path is not None and (path.parent / STOCK_QUEUE).exists() and not path.exists():
        raise StoreBroken(
            f"{path.parent} holds a job of stock Scrapy's, which would begin anew here: finish it with"
            " SLUICE_ENABLED=False, or give another JOBDIR"
        )
    store = SqliteJobStore(path=path, durable=durable, spider=spider)
    return Opened(store=store, durable=durable, recovered=store.open())


def job_id(ledger: Ledger) -> str:
    """Names the job in databases and dead letters, the same over all its starts."""
    known = ledger.store.fact("job")
    if known is not None:
        return str(json.loads(known))
    job = uuid.uuid4().hex
    ledger.record("job", json.dumps(job))
    ledger.commit()
    return job


def run_name(control: Control, job: str) -> str:
    """What `%(job)s` stands for: JOBDIR's folder, under Scrapyd the job's id; without JOBDIR each run is one of its own."""
    folder = job_dir(control.crawler.settings)
    return job if folder is None else Path(folder).absolute().name


def _absolute(folder: str) -> str:
    return str(Path(folder).absolute())


async def open_post(
    control: Control, revive: Callable[[Sequence[Row]], None], *, folder: str | None
) -> DeadLetterPost | None:
    """Open the dead letters; None where none are kept.

    Raises:
        DeadLetterError: they cannot be used; the message says what would do.
        BadSetting: a setting of scrapy-redis's that cannot be meant.
    """
    ledger, spider = control.ledger, control.spider
    settings, config = control.crawler.settings, control.config
    place = None if leaves_no_trace() else place_of(settings, config, spider.name)
    if place is None:
        return None
    job, watched = job_id(ledger), None
    if control.shared is not None:
        job = f"{job}:{control.shared.store.number}"  # each worker answers for its own claims
        watched = watched_key(settings, config, spider.name)
    post = DeadLetterPost(
        place=place,
        store=ledger.store,
        hooks=PostHooks(
            record=control.record_soon, revive=revive, wants=lambda: not control.stopping
        ),
        job=job,
        spider=spider.name,
        arguments=spider_arguments(spider),
        folder=None if control.shared is not None else folder and _absolute(folder),
        poll_s=POLL_S if watched is None else WATCHED_POLL_S,
    )
    await post.open()
    if control.shared is not None and watched is not None:
        control.shared.watches.letters(watched, post.look)
    return post


async def open_writer(control: Control) -> ResultsWriter | None:
    """Open the crawl's sinks; None where results go nowhere.

    Raises:
        SinkError: a sink that cannot be used; the message says what would do.
    """
    config = control.config
    if not config.results or leaves_no_trace():
        return None
    ledger = control.ledger
    job = job_id(ledger)
    name = control.spider.name
    try:
        targets = [target.replace("%(job)s", run_name(control, job)) for target in config.results]
        worker = None if control.shared is None else control.shared.store.number
        sinks = make_sinks(targets, spider=name, job=job, table=config.results_table, worker=worker)
    except ValueError as error:  # a word in SLUICE_RESULTS that names no sink
        raise SinkGone(str(error)) from error
    writer = ResultsWriter(
        store=ledger.store,
        sinks=sinks,
        hooks=WriterHooks(
            record=control.record_soon,
            dead=control.graves.bury_letter,
            gone=lambda message: control.close_spider(names.REASON_SINK, message),
            room=control.wake_soon,
        ),
        job=job,
        spider=name,
        bound=config.results_bound,
        give_up_after_s=config.sink_patience_s,
        linger_s=LINGER_S if ledger.durable else 0.0,
    )
    await writer.open()
    return writer

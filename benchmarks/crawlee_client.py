"""The same work by Crawlee for Python: run by the Python of its own environment, see `peers`.

``python crawlee_client.py SEEDS RESULTS AT_LEAST``. All is as Crawlee sets it, but for what it is told here:
the domains to throttle, to keep its state in memory, as the others do, and how many requests it runs
at once at least (1 is its own choice: it goes down to that where the machine is busy).
"""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from urllib.parse import urlsplit

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler, ParselCrawlingContext
from crawlee.request_loaders import ThrottlingRequestManager
from crawlee.storage_clients import MemoryStorageClient
from crawlee.storages import RequestQueue


async def crawl(seeds: Path, results: Path, at_least: int) -> None:
    """Fetch each line of *seeds* and write a line for each page."""
    urls = seeds.read_text(encoding="utf-8").split()
    storage = MemoryStorageClient()
    manager = ThrottlingRequestManager(
        await RequestQueue.open(storage_client=storage),
        domains=sorted({urlsplit(url).netloc for url in urls}),
        request_manager_opener=RequestQueue.open,
    )
    crawler = ParselCrawler(
        request_manager=manager,
        storage_client=storage,
        configure_logging=False,
        concurrency_settings=ConcurrencySettings(min_concurrency=at_least),
    )
    with results.open("w", encoding="utf-8") as lines:

        @crawler.router.default_handler
        async def page(context: ParselCrawlingContext) -> None:
            title = context.selector.css("title::text").get()
            status = context.http_response.status_code
            item = {"url": context.request.url, "status": status, "title": title}
            lines.write(json.dumps(item) + "\n")

        await crawler.run(urls)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    asyncio.run(crawl(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])))

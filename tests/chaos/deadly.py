"""A spider with a page that no process survives."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Any

from spiders.site import SiteSpider

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scrapy.http import Response


class DeadlySpider(SiteSpider):
    """Follows links, and dies on the page whose path ends so."""

    name = "deadly"
    deadly = "/13"

    def parse(self, response: Response, host: str = "") -> Iterator[Any]:
        if response.url.endswith(self.deadly):
            os.kill(os.getpid(), signal.SIGKILL)
        yield from super().parse(response, host)

"""What the status page's server answers: the page, its files, and the crawl's state as JSON, numbers and text.

The rule it keeps: an answer is made from the newest snapshot, once a second for all who ask, and costs the same however
large the crawl is.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

from aiohttp import web

from .actions import UnknownAction, carry_out
from .domainrows import DomainRows
from .pagefiles import SCRIPTS, chart_library, page_html, static
from .statusdata import detail_json, letters_json, status_json
from .stores.deadletter_db import DeadLetterError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .actions import Actions
    from .sampler import Sampler
    from .stores.deadletter_rows import Row

logger = logging.getLogger("sluice.statuspage")

MAX_DIGITS = 15
LAST_HOUR_S = 3600
MAX_LETTERS = 50
"""Of a domain, one by one."""
SPANS_S = (600, LAST_HOUR_S, 6 * LAST_HOUR_S, 48 * LAST_HOUR_S)
"""What the ribbon can show."""


class Answers:
    """Makes the answers; `StatusPage` lets in who may ask.

    Args:
        sampler: Where the numbers come from.
        actions: What can be done; None: nothing.
        may_act: Whether a request carries the token.
        where: Says where a URL is, for "Where is this URL?"; None: not known.
        letters: Finds so many of a domain's newest dead letters; None: not kept.
        metrics: Makes the answer to `/metrics`: its content type and its body.
        text: Makes the answer to `/status.txt`.
    """

    def __init__(
        self,
        *,
        sampler: Sampler,
        actions: Actions | None,
        may_act: Callable[[web.Request], bool],
        where: Callable[[str], Awaitable[str]] | None,
        letters: Callable[[str, int], Awaitable[list[Row]]] | None,
        metrics: Callable[[], tuple[str, bytes]] | None,
        text: Callable[[], str] | None,
    ) -> None:
        self._sampler = sampler
        self._actions, self._may_act = actions, may_act
        self._where, self._letters, self._metrics, self._text = where, letters, metrics, text
        self._rows = DomainRows(sampler)
        self._status: dict[int, tuple[tuple[int, int], bytes]] = {}  # by the ribbon's length
        library = chart_library()
        self._static = {name: static(name) for name in ("page.css", *SCRIPTS)} | library
        self._page_html = page_html(charts=bool(library))

    def routes(self) -> list[web.RouteDef]:
        """Where each answer is found."""
        return [
            web.get("/", self.page),
            web.get("/static/{name}", self.file),
            web.get("/status.json", self.status_json),
            web.get("/status.txt", self.status_txt),
            web.get("/domains.json", self.domains_json),
            web.get("/domain.json", self.domain_json),
            web.get("/letters.json", self.letters_json),
            web.get("/history.f32", self.history),
            web.get("/where.json", self.where_json),
            web.get("/metrics", self.metrics_text),
            web.post("/action/{name:[a-z/]+}", self.action),
        ]

    async def page(self, _: web.Request) -> web.Response:
        """The page."""
        return web.Response(text=self._page_html, content_type="text/html")

    async def file(self, request: web.Request) -> web.Response:
        """A style sheet or a script."""
        name = request.match_info["name"]
        if name not in self._static:
            raise web.HTTPNotFound
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return web.Response(text=self._static[name], content_type=kind)

    def _seq(self) -> int:
        snapshot = self._sampler.snapshot
        return snapshot.seq if snapshot else -1

    async def status_json(self, request: web.Request) -> web.Response:
        """All but the domains and the time lines; ``?span=21600``: so much of the ribbon."""
        wanted_s = whole(request.query.get("span", ""), LAST_HOUR_S)
        span_s = next((span_s for span_s in SPANS_S if span_s >= wanted_s), SPANS_S[-1])
        key = (self._seq(), len(self._sampler.book.events))
        kept = self._status.get(span_s)
        if kept is None or kept[0] != key:
            status = status_json(
                self._sampler,
                actions=self._actions is not None,
                can_look=self._where is not None,
                span_s=span_s,
            )
            kept = self._status[span_s] = (key, as_bytes(status))
        return web.Response(body=kept[1], content_type="application/json")

    async def status_txt(self, _: web.Request) -> web.Response:
        """The report."""
        if self._text is None:
            raise web.HTTPNotFound
        return web.Response(text=self._text())

    async def domains_json(self, request: web.Request) -> web.Response:
        """The first domains by what they are sorted by; ``?since=SEQ``: only rows that changed."""
        asked, snapshot = request.query, self._sampler.snapshot
        answer = self._rows.poll(
            snapshot.states if snapshot else {},
            self._seq(),
            whole(asked.get("since", ""), -1),
            sort=asked.get("sort", "left_s"),
            descending=asked.get("dir", "desc") != "asc",
            state=asked.get("state", ""),
            find=asked.get("find", "")[:200].lower(),
            limit=whole(asked.get("limit", ""), 15),
        )
        return web.Response(body=as_bytes(answer), content_type="application/json")

    async def domain_json(self, request: web.Request) -> web.Response:
        """One domain and how its last requests ended."""
        row = self._sampler.book.rows.get(request.query.get("name", ""))
        if row is None:
            raise web.HTTPNotFound
        return web.Response(
            body=as_bytes(detail_json(self._sampler.book, row)), content_type="application/json"
        )

    async def letters_json(self, request: web.Request) -> web.Response:
        """The newest dead letters of a domain, one by one."""
        domain = request.query.get("domain", "")
        if self._letters is None or not domain:
            raise web.HTTPNotFound
        try:
            rows = await self._letters(domain, MAX_LETTERS)
        except DeadLetterError as error:
            return problem(503, str(error))
        return web.Response(
            body=as_bytes({"domain": domain, "letters": letters_json(rows)}),
            content_type="application/json",
        )

    async def history(self, request: web.Request) -> web.Response:
        """Time lines as float32, from row ``since`` on: by seconds, or with ``step=60`` the means of minutes."""
        history, step = self._sampler.history, 1
        ring, last_at = history.fine, self._sampler.history_at
        if request.query.get("step") == str(history.FOLD):
            ring, step = history.mean, history.FOLD
            last_at -= history.gathered
        first, rows = ring.since(whole(request.query.get("since", ""), 0))
        headers = {
            "X-Series": ",".join(history.series),
            "X-First": str(first),
            "X-Last-At": f"{last_at:.3f}",
            "X-Step": str(step),
        }
        return web.Response(
            body=rows.tobytes(), headers=headers, content_type="application/octet-stream"
        )

    async def where_json(self, request: web.Request) -> web.Response:
        """Where a URL is."""
        url = request.query.get("url", "")
        if self._where is None or not url:
            raise web.HTTPNotFound
        return web.Response(
            body=as_bytes({"url": url, "answer": await self._where(url)}),
            content_type="application/json",
        )

    async def metrics_text(self, _: web.Request) -> web.Response:
        """For Prometheus."""
        if self._metrics is None:
            raise web.HTTPNotFound
        kind, body = self._metrics()
        return web.Response(body=body, headers={"Content-Type": kind})

    async def action(self, request: web.Request) -> web.Response:
        """Have something done."""
        if self._actions is None:
            return problem(403, "this page is read-only: SLUICE_STATUS_TOKEN is not set")
        if not self._may_act(request):
            return problem(401, "the token is missing or wrong")
        if request.content_type != "application/json":
            return problem(415, "send JSON")
        try:
            values = json.loads(await request.read() or b"{}")
            line = await carry_out(self._actions, request.match_info["name"], values)
        except UnknownAction:
            raise web.HTTPNotFound from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return problem(400, f"this cannot be done: {error}")
        logger.info("Through the status page: %s", line)
        return web.Response(body=as_bytes({"done": line}), content_type="application/json")


def whole(text: str, default: int) -> int:
    """A number from a query; what is none, or absurdly long, is the default."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else default


def as_bytes(value: Any) -> bytes:
    """Strict JSON in ASCII."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def problem(status: int, message: str) -> web.Response:
    """An answer that says what is wrong."""
    return web.Response(
        status=status, body=as_bytes({"error": message}), content_type="application/json"
    )

"""The status page: one small web server on loopback, that shows a crawl and lets nobody in.

The rule it keeps: the crawl does not notice it. Answers are made once a second for all clients,
connections are few and short-lived, and whatever goes wrong here is a warning. It is read-only
unless a token is set; foreign `Host` and `Origin` headers get nothing, so that no web page that
somebody happens to visit can look in or act.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import importlib.metadata
import importlib.resources
import json
import logging
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from aiohttp import web

from .statusdata import domains_json, status_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .sampler import Sampler

logger = logging.getLogger("sluice.statuspage")

SCRIPTS = ("format.js", "charts.js", "domains.js", "control.js", "page.js")
CHART_FILES = {
    "uplot.js": (
        "youplot/vendor/uplot.iife.min.js",
        "2d27e8ad3d228164525ce213f9dc716f39b4e3aee0cc773fb3491c96cf4921a2",
    ),
    "uplot.css": (
        "youplot/vendor/uplot.min.css",
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    ),
}
"""uPlot 1.6.31 as npm ships it, in the package `youplot` 1.0.0: served only if it is just that."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
MAX_CONNECTIONS = 64
SILENT_S = 10.0
"""A connection without a request is closed after this."""
MAX_BODY_BYTES = 4096
NEXT_PORTS = 10
MAX_DIGITS = 15
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Actions(Protocol):
    """What the page can have done to a crawl. Each returns a line for "What changed"."""

    def pause(self, by: str) -> str:
        """Hand out nothing more."""

    def resume(self) -> str:
        """Go on."""

    def stop(self) -> str:
        """End the crawl; what is pending is kept."""

    def pause_domain(self, domain: str) -> str:
        """Ask *domain* nothing more."""

    def resume_domain(self, domain: str) -> str:
        """Ask it again."""

    def set_ceiling(self, domain: str, ceiling: int) -> str:
        """At most *ceiling* requests to *domain* at once."""

    async def replay(self, domain: str) -> str:
        """Crawl the dead letters of *domain* again."""


def static(name: str) -> str:
    """A file of this package's `static` folder; the package may be a zip."""
    folder = importlib.resources.files(__package__ or "extensions") / "static"
    return (folder / name).read_text(encoding="utf-8")


def chart_library() -> dict[str, str]:
    """The chart library's files by name; empty if it is missing or not the known one."""
    found = {}
    try:
        package = importlib.metadata.distribution("youplot")
        for name, (path, digest) in CHART_FILES.items():
            content = Path(str(package.locate_file(path))).read_bytes()
            if sha256(content).hexdigest() != digest:
                return {}
            found[name] = content.decode()
    except (importlib.metadata.PackageNotFoundError, OSError):
        return {}
    return found


def page_html(*, charts: bool) -> str:
    """The page's HTML with its styles and scripts named."""
    styles = ["page.css", *(["uplot.css"] if charts else [])]
    scripts = [*(["uplot.js"] if charts else []), *SCRIPTS]
    head = "\n".join(f'<link rel="stylesheet" href="static/{name}">' for name in styles)
    tail = "\n".join(f'<script src="static/{name}"></script>' for name in scripts)
    return static("page.html").replace("<!-- head -->", head).replace("<!-- scripts -->", tail)


class StatusPage:
    """Serves one crawl's page.

    Args:
        sampler: Where the numbers come from.
        host, port: Where to listen; port 0: any free one. A taken port: the next free one.
        token: What lets somebody act; None: nobody can.
        actions: What can be done; None: nothing.
        where: Says where a URL is, for "Where is this URL?"; None: not known.
        metrics: Makes the answer to `/metrics`: its content type and its body.
        text: Makes the answer to `/status.txt`.
    """

    def __init__(
        self,
        *,
        sampler: Sampler,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        actions: Actions | None = None,
        where: Callable[[str], Awaitable[str]] | None = None,
        metrics: Callable[[], tuple[str, bytes]] | None = None,
        text: Callable[[], str] | None = None,
    ) -> None:
        self.sampler = sampler
        self.host, self.port = host, port
        self.url: str | None = None
        self._token = token
        self._actions = actions if token else None
        self._where, self._metrics, self._text = where, metrics, text
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._silent: dict[object, asyncio.TimerHandle] = {}
        self._status: tuple[int, int, bytes] = (-1, -1, b"")
        self._static: dict[str, str] = {}

    # -- coming and going --------------------------------------------------------------------------

    async def start(self) -> str | None:
        """Listen. Returns the page's address, or None where no port was to be had (warned of)."""
        library = chart_library()
        self._static = {name: static(name) for name in ("page.css", *SCRIPTS)} | library
        self._static["page.html"] = page_html(charts=bool(library))
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        app.add_routes([
            web.get("/", self._page),
            web.get("/static/{name}", self._file),
            web.get("/status.json", self._status_json),
            web.get("/status.txt", self._status_txt),
            web.get("/domains.json", self._domains_json),
            web.get("/history.f32", self._history),
            web.get("/where.json", self._where_json),
            web.get("/metrics", self._metrics_text),
            web.post("/action/{name:[a-z/]+}", self._action),
        ])  # fmt: skip
        self._runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1)
        try:
            await self._runner.setup()
            self._listener = await self._listen()
        except OSError as error:
            logger.warning("No status page: %s; the crawl goes on without", error)
            await self.stop()
            return None
        self.port = self._listener.sockets[0].getsockname()[1]
        shown = f"[{self.host}]" if ":" in self.host else self.host
        self.url = f"http://{shown}:{self.port}/"
        return self.url

    async def _listen(self) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        ports = [self.port] if self.port == 0 else range(self.port, self.port + NEXT_PORTS)
        failed: OSError | None = None
        for port in ports:
            try:
                server = await loop.create_server(
                    self._connection, self.host, min(port, 65535), backlog=MAX_CONNECTIONS
                )
            except OSError as error:
                failed = error
                continue
            if not all(server.sockets):
                # Another process took the port between this one's bind and listen, and uvloop tells so in this way only.
                server.close()
                failed = OSError(errno.EADDRINUSE, f"port {port} is taken")
                continue
            if failed is not None:
                logger.warning("Port %d is taken; the status page is on %d", self.port, port)
            return server
        raise failed or OSError("no port")

    def _connection(self) -> asyncio.Protocol:
        """A protocol for a new connection: few at a time, and none that stays silent."""
        server = self._runner.server if self._runner is not None else None
        if server is None or len(server.connections) >= MAX_CONNECTIONS:
            return _Refuse()
        protocol = server()

        def close() -> None:
            del self._silent[protocol]
            protocol.force_close()

        self._silent[protocol] = asyncio.get_running_loop().call_later(SILENT_S, close)
        return protocol

    async def stop(self) -> None:
        """Close every socket. Never raises."""
        for timer in self._silent.values():
            timer.cancel()
        self._silent.clear()
        listener, self._listener = self._listener, None
        runner, self._runner = self._runner, None
        if listener is not None:
            listener.close()
        if runner is not None:
            if runner.server is not None:
                for protocol in list(runner.server.connections):
                    protocol.force_close()
            with contextlib.suppress(Exception):
                await runner.cleanup()

    # -- who may ask -------------------------------------------------------------------------------

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        timer = self._silent.pop(request.protocol, None)
        if timer is not None:
            timer.cancel()
        try:
            if not self._is_own(request.host) or not self._is_own_origin(request):
                response: web.StreamResponse = _problem(403, "this address is not the page's own")
            else:
                response = await handler(request)
        except web.HTTPException as error:
            response = _problem(error.status, error.reason)
        except Exception:
            logger.exception("The status page could not answer %s", request.path[:200])
            response = _problem(500, "see the crawl's log")
        response.headers.update(HEADERS)
        return response

    def _is_own(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        return name is not None and (name in LOCAL or name == self.host)

    def _is_own_origin(self, request: web.Request) -> bool:
        origin = request.headers.get("Origin")
        if origin is not None:
            return origin == f"http://{request.host}"
        site = request.headers.get("Sec-Fetch-Site", "none")
        return request.method == "GET" or site in {"none", "same-origin"}

    def _may_act(self, request: web.Request) -> bool:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        return bool(self._token) and hmac.compare_digest(
            given.encode("utf-8", "replace"), (self._token or "").encode()
        )

    # -- answers -----------------------------------------------------------------------------------

    async def _page(self, _: web.Request) -> web.Response:
        return web.Response(text=self._static["page.html"], content_type="text/html")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in self._static or name == "page.html":
            raise web.HTTPNotFound
        kind = "text/css" if name.endswith(".css") else "text/javascript"
        return web.Response(text=self._static[name], content_type=kind)

    async def _status_json(self, _: web.Request) -> web.Response:
        snapshot = self.sampler.snapshot
        key = (snapshot.seq if snapshot else -1, len(self.sampler.book.events))
        if self._status[:2] != key:
            status = status_json(
                self.sampler,
                actions=self._actions is not None,
                can_look=self._where is not None,
            )
            self._status = (*key, _bytes(status))
        return web.Response(body=self._status[2], content_type="application/json")

    async def _status_txt(self, _: web.Request) -> web.Response:
        if self._text is None:
            raise web.HTTPNotFound
        return web.Response(text=self._text())

    async def _domains_json(self, request: web.Request) -> web.Response:
        asked = request.query
        answer = domains_json(
            self.sampler.book,
            self.sampler.snapshot.states if self.sampler.snapshot else {},
            sort=asked.get("sort", "left_s"),
            descending=asked.get("dir", "desc") != "asc",
            state=asked.get("state", ""),
            find=asked.get("find", "")[:200].lower(),
            limit=_whole(asked.get("limit", ""), 15),
        )
        return web.Response(body=_bytes(answer), content_type="application/json")

    async def _history(self, request: web.Request) -> web.Response:
        history = self.sampler.history
        first, rows = history.fine.since(_whole(request.query.get("since", ""), 0))
        headers = {
            "X-Series": ",".join(history.series),
            "X-First": str(first),
            "X-Last-At": f"{self.sampler.history_at:.3f}",
        }
        return web.Response(
            body=rows.tobytes(), headers=headers, content_type="application/octet-stream"
        )

    async def _where_json(self, request: web.Request) -> web.Response:
        url = request.query.get("url", "")
        if self._where is None or not url:
            raise web.HTTPNotFound
        return web.Response(
            body=_bytes({"url": url, "answer": await self._where(url)}),
            content_type="application/json",
        )

    async def _metrics_text(self, _: web.Request) -> web.Response:
        if self._metrics is None:
            raise web.HTTPNotFound
        kind, body = self._metrics()
        return web.Response(body=body, headers={"Content-Type": kind})

    async def _action(self, request: web.Request) -> web.Response:
        if self._actions is None:
            return _problem(403, "this page is read-only: SLUICE_STATUS_TOKEN is not set")
        if not self._may_act(request):
            return _problem(401, "the token is missing or wrong")
        if request.content_type != "application/json":
            return _problem(415, "send JSON")
        try:
            values = json.loads(await request.read() or b"{}")
            line = await self._act(self._actions, request.match_info["name"], values)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return _problem(400, f"this cannot be done: {error}")
        logger.info("Through the status page: %s", line)
        return web.Response(body=_bytes({"done": line}), content_type="application/json")

    async def _act(self, actions: Actions, name: str, values: dict[str, Any]) -> str:
        match name:
            case "pause":
                return actions.pause("through the status page")
            case "resume":
                return actions.resume()
            case "stop":
                return actions.stop()
            case "domain/pause":
                return actions.pause_domain(str(values["domain"]))
            case "domain/resume":
                return actions.resume_domain(str(values["domain"]))
            case "domain/ceiling":
                return actions.set_ceiling(str(values["domain"]), int(values["ceiling"]))
            case "domain/replay":
                return await actions.replay(str(values["domain"]))
        raise web.HTTPNotFound


class _Refuse(asyncio.Protocol):
    """One connection too many: closed at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()


def _whole(text: str, default: int) -> int:
    """A number from a query; what is none, or absurdly long, is the default."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_DIGITS else default


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode()


def _problem(status: int, message: str) -> web.Response:
    return web.Response(
        status=status, body=_bytes({"error": message}), content_type="application/json"
    )

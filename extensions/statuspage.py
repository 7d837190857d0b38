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
import logging
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aiohttp import web

from .pageanswers import Answers, problem

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .actions import Actions
    from .sampler import Sampler
    from .stores.deadletter_rows import Row

logger = logging.getLogger("sluice.statuspage")
malformed = logging.getLogger("sluice.statuspage.malformed")
malformed.setLevel(logging.CRITICAL)
"""What a client sends that is no HTTP is no error of the crawl; what a handler raises is logged by the page itself."""

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
LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class StatusPage:
    """Serves one crawl's page.

    Args:
        sampler: Where the numbers come from.
        host, port: Where to listen; port 0: any free one. A taken port: the next free one.
        token: What lets somebody act; None: nobody can.
        actions: What can be done; None: nothing.
        where: Says where a URL is, for "Where is this URL?"; None: not known.
        letters: Finds so many of a domain's newest dead letters; None: not kept.
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
        letters: Callable[[str, int], Awaitable[list[Row]]] | None = None,
        metrics: Callable[[], tuple[str, bytes]] | None = None,
        text: Callable[[], str] | None = None,
    ) -> None:
        self.sampler = sampler
        self.host, self.port = host, port
        self.url: str | None = None
        self._token = token
        self._actions = actions if token else None
        self._where, self._letters, self._metrics, self._text = where, letters, metrics, text
        self._runner: web.AppRunner | None = None
        self._listener: asyncio.Server | None = None
        self._silent: dict[object, asyncio.TimerHandle] = {}

    # -- coming and going --------------------------------------------------------------------------

    async def start(self) -> str | None:
        """Listen. Returns the page's address, or None where no port was to be had (warned of)."""
        answers = Answers(
            sampler=self.sampler,
            actions=self._actions,
            may_act=self._may_act,
            where=self._where,
            letters=self._letters,
            metrics=self._metrics,
            text=self._text,
        )
        app = web.Application(middlewares=[self._guard], client_max_size=MAX_BODY_BYTES)
        app.add_routes(answers.routes())
        self._runner = web.AppRunner(
            app, handle_signals=False, access_log=None, shutdown_timeout=1, logger=malformed
        )
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
                response: web.StreamResponse = problem(403, "this address is not the page's own")
            else:
                response = await handler(request)
        except web.HTTPException as error:
            response = problem(error.status, error.reason)
        except Exception:
            logger.exception("The status page could not answer %s", request.path[:200])
            response = problem(500, "see the crawl's log")
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


class _Refuse(asyncio.Protocol):
    """One connection too many: closed at once."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close it."""
        transport.close()

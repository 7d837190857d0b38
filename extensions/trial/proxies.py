"""Forward proxies on loopback that can be told to misbehave, for the demo and for tests.

Each does what a real one does: plain requests by their whole URL, tunnels by CONNECT, a connection kept for the next request.
It counts what it carried, so that nobody has to take the crawler's word for it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import enum
import socket
import struct
from dataclasses import dataclass, field
from urllib.parse import urlsplit

_RESET = struct.pack("ii", 1, 0)
_WALL = b"<!doctype html><html><head><title>Just a moment...</title></head><body>Wait</body></html>"
_HOP_BY_HOP = (b"proxy-", b"connection:", b"keep-alive:")


class Mood(enum.Enum):
    """What a trial proxy does with a request."""

    GOOD = "good"
    REFUSE = "refuse"  # nobody listens
    RESET = "reset"  # takes it, then resets
    HANG = "hang"  # takes it and says nothing
    BAN = "ban"  # the host's challenge page, with status 200
    EMPTY = "empty"  # nothing, with status 200
    AUTH = "auth"  # 407
    BAD_GATEWAY = "bad_gateway"  # 502
    TOO_MANY = "too_many"  # 429 with Retry-After


@dataclass(slots=True)
class Carried:
    """What one proxy counted."""

    requests: int = 0
    tunnels: int = 0
    in_flight: int = 0
    max_in_flight: int = 0
    turned_away: int = 0
    paths: list[str] = field(default_factory=list)
    cookies: list[str] = field(default_factory=list)


class TrialProxy:
    """One forward proxy.

    Args:
        user, password: What it asks for; None: nothing.
        delay_s: Seconds that it takes on top of the host.
        limit: What is over so many at once is answered with 502.
        address: Of its own, on loopback.
    """

    def __init__(
        self,
        *,
        user: str | None = None,
        password: str = "",
        delay_s: float = 0.0,
        limit: int | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        self._address = address
        self.mood = Mood.GOOD
        self.delay_s = delay_s
        self.limit = limit
        self.bans: set[str] = set()  # hosts that have banned it; with Mood.GOOD
        self.retry_after_s = 2
        self.carried = Carried()
        self.port = 0
        pair = f"{user}:{password}".encode()
        self._pass = None if user is None else b"Basic " + base64.b64encode(pair)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def place(self) -> str:
        """Its host and port."""
        return f"{self._address}:{self.port}"

    async def open(self) -> None:
        """Listen, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(
                self._meet, self._address, self.port, backlog=512, reuse_address=True
            )
            self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Refuse new connections and reset those that are open."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for writer in list(self._writers):
            _reset(writer)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def turn(self, mood: Mood) -> None:
        """Behave so from now on."""
        before, self.mood = self.mood, mood
        if mood is Mood.REFUSE:
            await self.close()
        elif before is Mood.REFUSE:
            await self.open()

    # -- one connection --------------------------------------------------------------------------

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it runs in one
        self._tasks.add(task)
        self._writers.add(writer)
        try:
            while await self._serve(reader, writer):
                pass
        except (OSError, EOFError, ValueError, RuntimeError, asyncio.LimitOverrunError):
            pass  # RuntimeError: uvloop's word for a transport that was closed meanwhile
        except asyncio.CancelledError:
            pass
        finally:
            self._tasks.discard(task)
            self._writers.discard(writer)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request. Returns whether the connection goes on."""
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head[:-4].split(b"\r\n")
        method, target, _ = lines[0].split(b" ", 2)
        body = await reader.readexactly(_length(lines))
        carried = self.carried
        carried.requests += 1
        carried.in_flight += 1
        carried.max_in_flight = max(carried.max_in_flight, carried.in_flight)
        try:
            host = target.decode() if method == b"CONNECT" else urlsplit(target.decode()).netloc
            if self.mood is Mood.HANG:
                await reader.read()  # until the client has had enough
                return False
            said = await self._refusal(writer, lines, host)
            if said is not None:
                carried.turned_away += 1
                writer.write(said)
                await writer.drain()
                return bool(said)
            if method == b"CONNECT":
                carried.tunnels += 1
                await self._tunnel(reader, writer, host)
                return False
            await self._carry(writer, lines, body, target.decode())
            return True
        finally:
            carried.in_flight -= 1

    async def _refusal(
        self, writer: asyncio.StreamWriter, lines: list[bytes], host: str
    ) -> bytes | None:
        """What it says instead of carrying the request; None: it carries it."""
        if self.delay_s:
            await asyncio.sleep(self.delay_s)
        mood = self.mood
        if mood is Mood.RESET:
            _reset(writer)
            raise ConnectionResetError
        given = next((v for v in map(_credentials, lines) if v is not None), None)
        if mood is Mood.AUTH or (self._pass is not None and given != self._pass):
            return _answer(
                "407 Proxy Authentication Required", more="Proxy-Authenticate: Basic\r\n"
            )
        if mood is Mood.BAD_GATEWAY or (self.limit and self.carried.in_flight > self.limit):
            return _answer("502 Bad Gateway")
        if mood is Mood.TOO_MANY:
            more = f"Retry-After: {self.retry_after_s}\r\n"
            return _answer("429 Too Many Requests", more=more)
        if mood is Mood.EMPTY:
            return _answer("200 OK")
        if mood is Mood.BAN or host in self.bans:
            return _answer("200 OK", _WALL)
        return None

    async def _carry(
        self, writer: asyncio.StreamWriter, lines: list[bytes], body: bytes, target: str
    ) -> None:
        parts = urlsplit(target)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.carried.paths.append(path)
        kept = [line for line in lines[1:] if not line.lower().startswith(_HOP_BY_HOP)]
        self.carried.cookies += [
            line[7:].strip().decode() for line in kept if line[:7].lower() == b"cookie:"
        ]
        first = lines[0].split(b" ", 1)[0] + f" {path} HTTP/1.1".encode()
        try:
            there, here = await asyncio.open_connection(parts.hostname, parts.port or 80)
        except OSError:
            writer.write(_answer("502 Bad Gateway"))
            await writer.drain()
            return
        try:
            here.write(b"\r\n".join([first, *kept, b"Connection: close", b"", body]))
            await here.drain()
            answer = await _whole_answer(there)
        finally:
            here.close()
        writer.write(answer)
        await writer.drain()

    async def _tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, place: str
    ) -> None:
        host, _, port = place.rpartition(":")
        try:
            there, here = await asyncio.open_connection(host, int(port))
        except OSError:
            writer.write(_answer("502 Bad Gateway"))
            await writer.drain()
            return
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await writer.drain()
        ways = [asyncio.create_task(_pump(reader, here)), asyncio.create_task(_pump(there, writer))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            here.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


def _reset(writer: asyncio.StreamWriter) -> None:
    sock = writer.get_extra_info("socket")
    if sock is not None:
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


def _length(lines: list[bytes]) -> int:
    for line in lines:
        if line.lower().startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def _credentials(line: bytes) -> bytes | None:
    name, _, value = line.partition(b":")
    return value.strip() if name.lower() == b"proxy-authorization" else None


def _answer(status: str, body: bytes = b"", more: str = "") -> bytes:
    kind = "Content-Type: text/html\r\n"
    head = f"HTTP/1.1 {status}\r\n{more}{kind}Content-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def _whole_answer(there: asyncio.StreamReader) -> bytes:
    """The host's answer, so framed that the client's connection may stay."""
    head = await there.readuntil(b"\r\n\r\n")
    lines = [
        line
        for line in head[:-4].split(b"\r\n")
        if not line.lower().startswith((b"connection:", b"content-length:", b"transfer-encoding:"))
    ]
    if b"transfer-encoding: chunked" in head.lower():
        body = await _chunks(there)
    elif b"content-length:" in head.lower():
        body = await there.readexactly(_length(head.split(b"\r\n")))
    else:
        body = await there.read()
    return b"\r\n".join([*lines, f"Content-Length: {len(body)}".encode(), b"", body])


async def _chunks(there: asyncio.StreamReader) -> bytes:
    parts = []
    while size := int((await there.readline()).split(b";")[0], 16):
        parts.append(await there.readexactly(size))
        await there.readline()
    await there.readline()
    return b"".join(parts)

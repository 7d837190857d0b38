"""The process behind `Site`: reads its script as one JSON line, says where it listens, serves.

It ends when its standard input ends, so that it cannot outlive a test run that was killed.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import socket
import struct
import sys
import time
from http.client import responses
from typing import Any
from urllib.parse import urlsplit

import uvloop

from .limits import Limiter
from .pages import built_in
from .script import Answer, Host

RESET = struct.pack("ii", 1, 0)
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Service:
    """One host at work: its behaviour, its counters, its listening socket."""

    def __init__(self, address: str, host: Host) -> None:
        self.address = address
        self.port = 0
        self.host = host
        self.limiter = None if host.limit is None else Limiter(host.limit)
        self.server: asyncio.Server | None = None
        self.connections: set[Connection] = set()
        self.busy_workers = 0
        self.line: list[tuple[Connection, Answer, str]] = []
        self.first_due: float | None = None
        self.in_flight = 0
        self.turns: dict[str, int] = {}
        self.forget()

    def forget(self) -> None:
        """Begin to count anew."""
        self.received: list[tuple[float, str, int, bool]] = []
        self.max_in_flight = 0
        self.max_connections = 0
        self.connects = 0

    def change(self, host: Host) -> None:
        """Behave like *host* from now on; the counters go on."""
        self.limiter = None if host.limit is None else Limiter(host.limit)
        self.host = host
        self.first_due = None
        self.turns = {}

    async def listen(self) -> None:
        if self.server is None:
            self.server = await asyncio.get_running_loop().create_server(
                lambda: Connection(self), self.address, self.port, backlog=1024
            )
            self.port = self.server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Refuse new connections and reset those that are open."""
        if self.server is not None:
            self.server.close()
            self.server = None
            for connection in list(self.connections):
                connection.reset()

    def answer(self, target: str, path: str, now: float) -> tuple[Answer, bool, float]:
        """The answer to a request, was it refused by the limiter, and for how many seconds."""
        host = self.host
        if path == "/robots.txt" and all(route.path != path for route in host.routes):
            return Answer(headers=(("Content-Type", "text/plain"),), body=host.robots), False, 0.0
        if host.storm is not None:
            if self.first_due is None:
                self.first_due = now
            if now - self.first_due < host.storm_s:
                return host.storm, False, 0.0
        if self.limiter is not None:
            wait_s = self.limiter.wait_s(now, self.in_flight)
            if wait_s > 0.0:
                return host.refusal, True, wait_s
        for route in host.routes:
            if route.path == path or (
                route.path.endswith("*") and path.startswith(route.path[:-1])
            ):
                turn = self.turns.get(target, 0)
                self.turns[target] = turn + 1
                return route.answers[min(turn, len(route.answers) - 1)], False, 0.0
        return Answer(), False, 0.0

    def stats(self) -> dict[str, Any]:
        hits: dict[str, int] = {}
        statuses: dict[str, int] = {}
        refused = 0
        for _, target, status, was_refused in self.received:
            hits[target] = hits.get(target, 0) + 1
            statuses[str(status)] = statuses.get(str(status), 0) + 1
            refused += was_refused
        return {
            "received": len(self.received),
            "refused": refused,
            "statuses": statuses,
            "hits": hits,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "connects": self.connects,
            "max_connections": self.max_connections,
        }


class Connection(asyncio.Protocol):
    """One client connection: a request at a time, kept alive."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.buffer = b""
        self.transport: Any = None
        self.busy = False
        self.counted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        service = self.service
        service.connections.add(self)
        service.connects += 1
        service.max_connections = max(service.max_connections, len(service.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self.service.connections.discard(self)
        self.ended()

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while not self.busy:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self.buffer[:end]
            length = LENGTH.search(head) if head[:3] != b"GET" else None
            after = end + 4 + (int(length[1]) if length else 0)
            if len(self.buffer) < after:
                return
            self.buffer = self.buffer[after:]
            self.request(head[: head.find(b"\r\n")].decode("latin-1").split(" ")[1])

    def request(self, target: str) -> None:
        service = self.service
        path = target if target.startswith("/") else urlsplit(target).path
        path = path.partition("?")[0]
        now = time.monotonic()
        answer, refused, wait_s = service.answer(target, path, now)
        status = answer.status
        if answer.body is None and answer.status == 200 and not answer.fault:
            origin = f"http://{service.address}:{service.port}"
            if not target.startswith("/"):
                origin = "{0.scheme}://{0.netloc}".format(urlsplit(target))
            status, kind, body = built_in(path, origin)
            head = _head(status, (("Content-Type", kind), *answer.headers), len(body))
        else:
            body = (answer.body if answer.body is not None else "<title>x</title>").encode()
            wait = str(math.ceil(wait_s))
            headers = [(name, value.replace("{wait}", wait)) for name, value in answer.headers]
            if not any(name.lower() == "content-type" for name, _ in headers):
                headers.append(("Content-Type", "text/html"))
            head = _head(status, headers, len(body))
        service.received.append((time.time(), target, status, refused))
        service.in_flight += 1
        service.max_in_flight = max(service.max_in_flight, service.in_flight)
        self.busy = self.counted = True
        host = service.host
        if refused or host.workers is None or path == "/robots.txt":
            latency_s = host.refusal_latency_s if refused else host.latency_s
            if host.workers is not None and path == "/robots.txt":
                latency_s = 0.0
            self.after(latency_s + answer.delay_s, answer, head, body)
        else:
            service.line.append((self, answer, (head, body)))
            _work(service)

    def after(self, delay_s: float, answer: Answer, head: bytes, body: bytes) -> None:
        if delay_s > 0.0:
            asyncio.get_running_loop().call_later(delay_s, self.send, answer, head, body)
        else:
            self.send(answer, head, body)

    def send(self, answer: Answer, head: bytes, body: bytes) -> None:
        if self.transport.is_closing():
            return
        match answer.fault:
            case None:
                self.transport.write(head + body)
                self.ended()
                self.busy = False
                if self.buffer:
                    self.data_received(b"")
            case "hang":
                pass
            case "reset":
                self.reset()
            case "close":
                self.transport.close()
            case "stall":
                self.transport.write(head + body[: len(body) * 9 // 10])
            case "trickle":
                self.transport.write(head)
                self.trickle(body, answer.every_s)

    def trickle(self, left: bytes, every_s: float) -> None:
        if left and not self.transport.is_closing():
            self.transport.write(left[:1])
            asyncio.get_running_loop().call_later(every_s, self.trickle, left[1:], every_s)

    def ended(self) -> None:
        """The request that was counted as in flight is so no more."""
        if self.counted:
            self.counted = False
            self.service.in_flight -= 1

    def reset(self) -> None:
        sock = self.transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport.abort()


def _head(status: int, headers: Any, length: int) -> bytes:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    reason = responses.get(status, "Unknown")
    return f"HTTP/1.1 {status} {reason}\r\n{lines}Content-Length: {length}\r\n\r\n".encode(
        "latin-1", "surrogateescape"
    )


def _work(service: Service) -> None:
    """Let free workers take what is first in line."""
    while service.line and service.busy_workers < (service.host.workers or 0):
        connection, answer, (head, body) = service.line.pop(0)
        service.busy_workers += 1
        delay_s = service.host.latency_s + answer.delay_s
        asyncio.get_running_loop().call_later(
            delay_s, _worked, service, connection, answer, head, body
        )


def _worked(
    service: Service, connection: Connection, answer: Answer, head: bytes, body: bytes
) -> None:
    service.busy_workers -= 1
    connection.send(answer, head, body)
    _work(service)


async def _control(services: list[Service], command: dict[str, Any]) -> Any:
    """Carry out one command of `Site`."""
    chosen = services if command.get("host") is None else [services[command["host"]]]
    match command["do"]:
        case "stats":
            return [service.stats() for service in chosen]
        case "log":
            return [service.received for service in chosen]
        case "forget":
            for service in chosen:
                service.forget()
        case "change":
            chosen[0].change(Host.from_json(command["script"]))
        case "listen":
            for service in chosen:
                await service.listen()
        case "close":
            for service in chosen:
                service.close()
    return None


async def serve() -> None:
    """Serve until standard input ends."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    script = json.loads(await reader.readline())
    services = [Service(address, Host.from_json(host)) for address, host in script["hosts"]]
    for service in services:
        await service.listen()
    _say([(service.address, service.port) for service in services])
    while line := await reader.readline():
        _say(await _control(services, json.loads(line)))


def _say(value: Any) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    uvloop.run(serve())

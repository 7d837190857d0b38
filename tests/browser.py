"""A headless Chromium, driven over its own DevTools protocol: no driver, no further package."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import aiohttp

if TYPE_CHECKING:
    from pathlib import Path

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--metrics-recording-only", "--password-store=basic",
)  # fmt: skip


class Browser:
    """One page of one browser. Use it in an ``async with`` block."""

    def __init__(self) -> None:
        self._events: list[dict[str, Any]] = []
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0

    async def __aenter__(self) -> Self:
        assert CHROMIUM is not None
        self._folder = tempfile.mkdtemp(prefix="sluice-chromium-")
        self._process = await asyncio.create_subprocess_exec(
            CHROMIUM,
            *ARGUMENTS,
            f"--user-data-dir={self._folder}",
            "about:blank",
            stderr=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        address = await asyncio.wait_for(self._address(), 60)
        self._drain = asyncio.ensure_future(self._read_on())
        self._session = aiohttp.ClientSession()
        async with self._session.get(f"http://{address}/json") as answer:
            targets = await answer.json()
        page = next(target for target in targets if target["type"] == "page")
        self._socket = await self._session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=0)
        self._reader = asyncio.ensure_future(self._read())
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.call(f"{domain}.enable")
        return self

    async def _address(self) -> str:
        assert self._process.stderr is not None
        while line := (await self._process.stderr.readline()).decode():
            if found := re.search(r"listening on ws://([^/]+)/", line):
                return found[1]
        raise RuntimeError("Chromium did not start")

    async def _read_on(self) -> None:
        assert self._process.stderr is not None
        while await self._process.stderr.readline():
            pass

    async def _read(self) -> None:
        async for message in self._socket:
            data = json.loads(message.data)
            if "id" in data:
                self._waiting.pop(data["id"]).set_result(data)
            else:
                self._events.append(data)

    async def call(self, method: str, **values: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        self._number += 1
        future = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": values})
        answer = await asyncio.wait_for(future, 60)
        assert "error" not in answer, answer
        return answer["result"]

    async def js(self, expression: str) -> Any:
        """The value of a JavaScript expression on the page."""
        answer = await self.call(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    async def until(self, expression: str, timeout_s: float = 30) -> Any:
        """The value of *expression* as soon as it is true."""
        deadline = asyncio.get_running_loop().time() + timeout_s
        while not (value := await self.js(expression)):
            assert asyncio.get_running_loop().time() < deadline, f"never true: {expression}"
            await asyncio.sleep(0.1)
        return value

    async def go(self, url: str) -> None:
        """Open *url* and wait until it is loaded."""
        await self.call("Page.navigate", url=url)
        await self.until("document.readyState === 'complete'")

    async def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Set the window's size and the colour scheme."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def press(self, key: str) -> None:
        """Press and release a key: Tab, Enter, Escape."""
        code = {"Tab": 9, "Enter": 13, "Escape": 27}[key]
        text = {"text": "\r"} if key == "Enter" else {}
        values = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        await self.call("Input.dispatchKeyEvent", type="keyDown", **values, **text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **values)

    async def named(self) -> list[tuple[str, str]]:
        """What a screen reader meets: role and name of each node that has both or should."""
        tree = (await self.call("Accessibility.getFullAXTree"))["nodes"]
        return [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in tree
            if not node.get("ignored") and "role" in node
        ]

    async def shot(self, path: Path) -> None:
        """Keep a picture of the whole page."""
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        picture = await self.call(
            "Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True
        )
        path.write_bytes(base64.b64decode(picture["data"]))

    def complaints(self) -> list[str]:
        """Console messages, exceptions and violations so far."""
        kinds = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}
        return [json.dumps(event["params"]) for event in self._events if event["method"] in kinds]

    def requested(self) -> list[str]:
        """URLs that the page asked for so far."""
        return [
            event["params"]["request"]["url"]
            for event in self._events
            if event["method"] == "Network.requestWillBeSent"
        ]

    async def __aexit__(self, *_: object) -> None:
        with suppress(Exception):
            await self.call("Browser.close")
        self._reader.cancel()
        await self._session.close()
        try:
            await asyncio.wait_for(self._process.wait(), 15)
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._drain.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)

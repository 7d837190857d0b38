"""`scrapy fixture URL`: save a page, with its headers, for contracts to be checked against.

It is fetched as a crawl would fetch it: with the project's user agent, robots.txt obeyed. What
could hold a secret (cookies, challenges) is not saved.
"""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from scrapy import Request, Spider
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from ..arguments import url_fault
from ..contracts import FOLDER, HEADERS_SUFFIX

if TYPE_CHECKING:
    import argparse
    from collections.abc import AsyncIterator

    from scrapy.http import Response
    from twisted.python.failure import Failure

QUIET_SETTINGS: dict[str, Any] = {
    "LOG_LEVEL": "ERROR",
    "JOBDIR": None,
    "FEEDS": {},
    "ITEM_PIPELINES": {},
    "SLUICE_RESULTS": "",
    "SLUICE_DEAD_LETTERS": "",
    "SLUICE_LEARNED": None,
    "SLUICE_STATUS_PORT": "off",
    "SLUICE_PROGRESS": False,
}
_NOT_SAVED = {
    b"set-cookie", b"www-authenticate", b"proxy-authenticate", b"content-length",
    b"content-encoding", b"transfer-encoding", b"connection", b"keep-alive",
}  # fmt: skip


class Command(ScrapyCommand):
    """Save a page as a fixture; 1 if it could not be fetched."""

    requires_project = True

    def syntax(self) -> str:
        """One line of usage."""
        return "[-o NAME] [--force] <url>"

    def short_desc(self) -> str:
        """What `scrapy -h` says."""
        return "Save a page for spider contracts (@fixture)"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Scrapy's global options and our own."""
        super().add_options(parser)
        parser.add_argument("-o", "--output", metavar="NAME", help="name of the file to write")
        parser.add_argument("--force", action="store_true", help="replace a file of that name")

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        """Leave no trace but the fixture."""
        super().process_options(args, opts)
        assert self.settings is not None
        self.settings.setdict({**QUIET_SETTINGS}, priority="spider")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Fetch the page named in *args* and save it."""
        if len(args) != 1:
            raise UsageError("give one URL")
        if fault := url_fault(args[0]):
            raise UsageError(f"{args[0]}: {fault}")
        assert self.settings is not None
        assert self.crawler_process is not None
        name = opts.output or _name_for(args[0])
        package = import_module(self.settings["NEWSPIDER_MODULE"])
        path = Path(package.__file__ or ".").parent / FOLDER / name
        if Path(name).name != name or name.endswith(HEADERS_SUFFIX):
            raise UsageError(f"-o {name}: give a plain file name")
        if path.exists() and not opts.force:
            raise UsageError(f"{path} exists; --force replaces it, -o gives another name")
        got: list[Response | str] = []
        self.crawler_process.crawl(_Recorder, url=args[0], got=got)
        self.crawler_process.start()
        answer = got[0] if got else "no answer; -L INFO says more"
        if isinstance(answer, str):
            sys.stderr.write(f"scrapy fixture: {args[0]}: {answer}\n")
            self.exitcode = 1
        else:
            _save(answer, path)


class _Recorder(Spider):
    """Fetches one page and keeps the answer, whatever its status."""

    name = "fixture"

    def __init__(self, *, url: str, got: list[Response | str]) -> None:
        super().__init__()
        self._url = url
        self._got = got

    async def start(self) -> AsyncIterator[Request]:
        yield Request(
            self._url, self.parse, errback=self.failed, meta={"handle_httpstatus_all": True}
        )

    def parse(self, response: Response) -> None:
        self._got.append(response)

    def failed(self, failure: Failure) -> None:
        self._got.append(f"{type(failure.value).__name__}: {failure.value}")


def _save(response: Response, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(response.body)
    lines = [
        f"{name.decode('latin-1')}: {value.decode('latin-1')}\n"
        for name, values in response.headers.items()
        if name.lower() not in _NOT_SAVED
        for value in values
    ]
    path.with_name(path.name + HEADERS_SUFFIX).write_text("".join(lines), encoding="utf-8")
    status = "" if response.status == 200 else f" {response.status}"  # noqa: PLR2004
    print(f"wrote {path} ({len(response.body):,} bytes). For a contract:\n")
    print(f"    @url {response.url}\n    @fixture {path.name}{status}")


def _name_for(url: str) -> str:
    parts = urlsplit(url)
    last = parts.path.rstrip("/").rsplit("/", 1)[-1] or parts.hostname or "page"
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", last).strip(".-") or "page"
    return name if "." in name and parts.path.rstrip("/") else f"{name}.html"

"""Contracts that need no network: `scrapy check` answers from pages that lie beside the spider.

A spider with one `@fixture` is checked offline as a whole: whatever else it asks for is refused, so
that a check can neither load a site nor depend on it. A spider without any is fetched for, as
Scrapy does.
"""

from __future__ import annotations

import json
import os
import re
import sys
from importlib.resources import files
from inspect import getmembers
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from itemadapter import ItemAdapter, is_item
from scrapy.contracts import Contract
from scrapy.contracts.default import MetadataContract
from scrapy.exceptions import ContractFail, IgnoreRequest, NotConfigured
from scrapy.http import Headers, Request
from scrapy.responsetypes import responsetypes

from .codec import RequestCodec, Unserialisable
from .results import UnencodableItem, encode_item

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.resources.abc import Traversable

    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http import Response
    from scrapy.settings import BaseSettings

CHECK_SETTINGS: dict[str, Any] = {
    "JOBDIR": None,
    "HTTPCACHE_ENABLED": False,
    "SLUICE_RESULTS": "",
    "SLUICE_DEAD_LETTERS": "",
    "SLUICE_LEARNED": None,
    "SLUICE_STATUS_PORT": "off",
    "SLUICE_PROGRESS": False,
    "RETRY_ENABLED": False,
    "DOWNLOAD_DELAY": 0,
    "DOWNLOAD_TIMEOUT": 15,
    "CLOSESPIDER_TIMEOUT": 120,
    "TELNETCONSOLE_ENABLED": False,
    "REMOTE_CONTROL_ENABLED": False,
    "STATS_DUMP": False,
}
"""Under which a check stores nothing, opens no port, and ends soon whatever the sites do."""

META_KEY = "sluice_fixture"
FOLDER = "fixtures"
HEADERS_SUFFIX = ".headers"
_OWN_META = {"dont_retry": True, "dont_redirect": True, "dont_cache": True, "dont_proxy": True}
_HAS_FIXTURE = re.compile(r"^\s*@fixture\b", re.MULTILINE)
_EMPTY: tuple[Any, ...] = (None, "", [], {}, ())


def checking() -> bool:
    """Is this process a `scrapy check`? Then nothing may be written and no port be opened."""
    return "SCRAPY_CHECK" in os.environ


def add_contracts(settings: BaseSettings) -> None:
    """Make the contracts of this module known; what the user set stays."""
    for place, contract in enumerate(CONTRACTS, start=20):
        settings.setdefault_in_component_priority_dict("SPIDER_CONTRACTS", contract, place)


def prepare_check(settings: BaseSettings) -> None:
    """Let fixtures answer first, leave nothing behind, and wait for nobody."""
    settings.setdict(CHECK_SETTINGS, priority="cmdline")
    settings.setdefault_in_component_priority_dict("DOWNLOADER_MIDDLEWARES", CheckMiddleware, 1)


class FixtureContract(Contract):
    """Answers (`@fixture page.html [status]`) from a file.

    It lies in the folder `fixtures` beside the spider's module. The URL stays that of `@url`.
    Headers come from `page.html.headers` ("Name: value" lines) if
    that file exists.
    """

    name = "fixture"

    def __init__(self, method: Callable[..., Any], *args: Any) -> None:
        super().__init__(method, *args)
        if not self.args[0] or len(self.args) > 2:  # noqa: PLR2004
            raise ValueError("@fixture takes a file name and, if it is not 200, a status")
        self._folder = _folder_of(type(method.__self__))  # type: ignore[attr-defined]
        self._file = self.args[0]
        self._status = int(self.args[1]) if len(self.args) > 1 else 200

    def adjust_request_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """Put the answer into the request's meta, where the middleware finds it.

        Raises:
            FileNotFoundError: There is no such fixture.
        """
        body = self._folder.joinpath(self._file).read_bytes()
        answer = {
            "file": self._file,
            "status": self._status,
            "body": body,
            "headers": self._headers(),
        }
        args["meta"] = {**(args.get("meta") or {}), **_OWN_META, META_KEY: answer}
        return args

    def pre_process(self, response: Response) -> None:
        """Fail if the answer did not come from the fixture."""
        if META_KEY not in response.meta:
            raise ContractFail(f"Answered by something else than {self._file}")

    def _headers(self) -> dict[str, list[str]]:
        found = self._folder.joinpath(self._file + HEADERS_SUFFIX)
        headers: dict[str, list[str]] = {}
        for line in found.read_text(encoding="utf-8").splitlines() if found.is_file() else ():
            name, _, value = line.partition(":")
            headers.setdefault(name.strip(), []).append(value.strip())
        return headers


class MetaContract(MetadataContract):
    """`@meta {...}`, which adds to what other contracts put into meta instead of replacing it."""

    def adjust_request_args(self, args: dict[str, Any]) -> dict[str, Any]:
        """Merge the JSON object into the request's meta."""
        args["meta"] = {**(args.get("meta") or {}), **json.loads(" ".join(self.args))}
        return args


class FieldsContract(Contract):
    """Checks (`@fields a b c`) that items come out, and that none lacks one of these fields."""

    name = "fields"

    def post_process(self, output: list[Any]) -> None:
        """Fail on the first item that lacks a field, or if there is no item."""
        items = [ItemAdapter(value) for value in output if is_item(value)]
        if not items:
            raise ContractFail("No item, so no fields")
        for number, item in enumerate(items, start=1):
            if lacking := [name for name in self.args if item.get(name) in _EMPTY]:
                raise ContractFail(f"Item {number}: missing or empty: {', '.join(lacking)}")


class FollowsContract(Contract):
    """Checks (`@follows N [M] [host ...]`) that N to M requests come out, all to these hosts.

    Without M it is N or more, without hosts they may go anywhere.
    """

    name = "follows"

    def __init__(self, method: Callable[..., Any], *args: Any) -> None:
        super().__init__(method, *args)
        numbers = [int(arg) for arg in self.args if arg.isdecimal()]
        self._hosts = [arg.lower() for arg in self.args if arg and not arg.isdecimal()]
        if len(numbers) not in {1, 2}:
            raise ValueError("@follows takes one or two numbers, and then hosts if they matter")
        self._least, self._most = numbers[0], numbers[1] if len(numbers) > 1 else sys.maxsize

    def post_process(self, output: list[Any]) -> None:
        """Fail if there are too few or too many requests, or one goes elsewhere."""
        urls = [value.url for value in output if isinstance(value, Request)]
        if not self._least <= len(urls) <= self._most:
            most = "or more" if self._most == sys.maxsize else f"to {self._most}"
            raise ContractFail(f"{len(urls)} requests, expected {self._least} {most}")
        for url in urls:
            if self._hosts and (urlsplit(url).hostname or "") not in self._hosts:
                raise ContractFail(f"A request to {url}, expected only {', '.join(self._hosts)}")


class AccountedContract(Contract):
    """Checks (`@accounted`) that all that comes out can be kept: nothing of it would be lost.

    Items must fit into strict JSON, requests must survive a restart (no lambda, no live object in
    meta), and nothing else may come out.
    """

    name = "accounted"

    def __init__(self, method: Callable[..., Any], *args: Any) -> None:
        super().__init__(method, *args)
        self._codec = RequestCodec(spider=method.__self__)  # type: ignore[attr-defined]

    def post_process(self, output: list[Any]) -> None:
        """Fail on the first thing that cannot be kept."""
        for number, value in enumerate(output, start=1):
            try:
                if isinstance(value, Request):
                    self._codec.encode(value)
                else:
                    encode_item(value)
            except (Unserialisable, UnencodableItem) as error:
                raise ContractFail(f"Output {number} cannot be kept: {error}") from None


class CheckMiddleware:
    """During `scrapy check`: answers from fixtures, and keeps a spider that has them offline."""

    def __init__(self, *, offline: bool) -> None:
        self._offline = offline

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> CheckMiddleware:
        """Raise `NotConfigured` unless this is a check."""
        if not checking():
            raise NotConfigured
        return cls(offline=has_fixtures(crawler.spidercls))

    def process_request(self, request: Request) -> Response | None:
        """The fixture as a response; None for the network.

        Raises:
            IgnoreRequest: No fixture, and the spider is checked offline.
        """
        answer = request.meta.get(META_KEY)
        if answer is not None:
            return _response(request, answer)
        if self._offline:
            raise IgnoreRequest(
                f"{request.url} has no @fixture, and this spider is checked offline"
            )
        return None


def has_fixtures(spidercls: type[Spider]) -> bool:
    """Does a callback of *spidercls* carry `@fixture`?"""
    return any(
        callable(member) and _HAS_FIXTURE.search(member.__doc__ or "")
        for _, member in getmembers(spidercls)
    )


def _response(request: Request, answer: dict[str, Any]) -> Response:
    headers = Headers(answer["headers"])
    kind = responsetypes.from_args(headers=headers, filename=answer["file"], body=answer["body"])
    return kind(request.url, status=answer["status"], headers=headers, body=answer["body"])


def _folder_of(spidercls: type[Spider]) -> Traversable:
    """The folder `fixtures` beside the module of *spidercls*, in a zipped egg too."""
    module = sys.modules[spidercls.__module__]
    if module.__package__:
        return files(module.__package__).joinpath(FOLDER)
    return Path(module.__file__ or ".").parent / FOLDER


CONTRACTS = (FixtureContract, MetaContract, FieldsContract, FollowsContract, AccountedContract)

"""Requests as JSON and back: for a crash, another process, a replay; with nothing in it that runs.

The rule it keeps: a request comes back as it was when it was yielded, or is refused by the name of
the field that cannot be stored. Only what differs from a plain `Request` is written. Loading runs
no code that a row could choose: callbacks are methods of the spider by name, request classes are
ones already imported, and there is no pickle.
"""

from __future__ import annotations

import base64
import inspect
import json
import os
import sys
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, Final

from scrapy import Request, Spider
from scrapy.http import Headers
from scrapy.http.request import NO_CALLBACK

from .plainjson import BadTag, NotPlain, PlainJson, imported

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from scrapy.settings import BaseSettings

FORMAT: Final = 1
_NO_CALLBACK_NAME: Final = ":none"
_OWN_FIELDS: Final = frozenset({"format", "class", "state"})
_JSON: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_SCALARS: Final = frozenset({str, int, float, bool, type(None), bytes})


class Unserialisable(Exception):
    """A request that cannot be stored.

    Attributes:
        field: Which part of it, such as ``callback`` or ``meta['page']``.
        why: What is wrong with that part.
    """

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field = field
        self.why = why


class Unreadable(Exception):
    """A stored request that cannot be made again: torn, tampered with, or made for other code.

    Attributes:
        reason: Short, for a dead letter.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class RequestCodec:
    """Writes and reads the requests of one spider."""

    def __init__(
        self,
        *,
        spider: Spider,
        packages: Collection[str] = (),
        max_payload_bytes: int = 1_000_000,
        transient_meta: Collection[str] = (),
    ) -> None:
        """Keep the settings.

        Args:
            spider: Whose methods callbacks name.
            packages: Top-level packages, beside the spider's own, whose dataclasses, items, named
                tuples and enums may be in meta, cb_kwargs and cookies.
            max_payload_bytes: Larger requests are refused, naming their largest field.
            transient_meta: Meta keys that live and die with this process and are left out.
        """
        own = {
            cls.__module__.partition(".")[0] for cls in type(spider).__mro__ if cls is not object
        }
        self._values = PlainJson(packages=(own - {"scrapy"}) | set(packages))
        self._spider = spider
        self._max_payload_bytes = max_payload_bytes
        self._transient_meta = frozenset(transient_meta)
        self._names: dict[
            Any, str
        ] = {}  # by function, of the spider's methods that were used as callbacks
        self._methods: dict[str, Callable[..., Any]] = {}
        self._classes: dict[type, str] = {}

    # --- writing ----------------------------------------------------------------------------------

    def encode(self, request: Request) -> bytes:
        """*request* as ASCII JSON.

        Raises:
            Unserialisable: Names the field, and says why.
        """
        plain = self._plain(request)
        try:
            payload = _JSON.encode(plain).encode("ascii")
        except (ValueError, RecursionError) as e:
            raise Unserialisable(_largest(plain), str(e)) from e
        if len(payload) > self._max_payload_bytes:
            raise Unserialisable(
                _largest(plain),
                f"the request takes {len(payload)} bytes (at most {self._max_payload_bytes})",
            )
        return payload

    def _plain(self, request: Request) -> dict[str, Any]:
        plain: dict[str, Any] = {"url": request.url}
        kind = type(request)
        if kind is not Request:
            self._describe_class(request, plain)
        if request.method != "GET":
            plain["method"] = request.method
        if request.callback is not None:
            plain["callback"] = self._name_of("callback", request.callback)
        if request.errback is not None:
            plain["errback"] = self._name_of("errback", request.errback)
        if headers := request.headers:
            plain["headers"] = _plain_headers(headers)
        if request.body:
            plain["body"] = _plain_body(request.body)
        if cookies := request.cookies:
            plain["cookies"] = self._value("cookies", cookies)
        if meta := request.meta:
            transient = self._transient_meta
            if transient and not transient.isdisjoint(meta):
                meta = {k: v for k, v in meta.items() if k not in transient}
            plain["meta"] = self._value("meta", meta)
        if request.cb_kwargs:
            plain["cb_kwargs"] = self._value("cb_kwargs", request.cb_kwargs)
        if request.encoding != "utf-8":
            plain["encoding"] = request.encoding
        if request.priority:
            plain["priority"] = request.priority
        if request.dont_filter:
            plain["dont_filter"] = True
        if request.flags:
            plain["flags"] = self._value("flags", request.flags)
        return plain

    def _describe_class(self, request: Request, plain: dict[str, Any]) -> None:
        cls = type(request)
        if cls not in self._classes:
            name = f"{cls.__module__}:{cls.__qualname__}"
            if imported(cls.__module__, cls.__qualname__) is not cls:
                raise Unserialisable(
                    "class",
                    f"{name} cannot be found by its name: define it at a module's top level",
                )
            self._classes[cls] = name
        plain["class"] = self._classes[cls]
        for name in request.attributes:
            if name not in _REQUEST_FIELDS:
                plain[name] = self._value(name, getattr(request, name))
        if state := getattr(request, "__dict__", None):
            plain["state"] = self._value("attributes", state)

    def _value(self, field: str, value: Any) -> Any:
        try:
            return self._values.dumped(value)
        except NotPlain as e:
            raise Unserialisable(field + e.where, e.why) from e

    def _name_of(self, field: str, callback: Callable[..., Any]) -> str:
        if callback is NO_CALLBACK:
            return _NO_CALLBACK_NAME
        if getattr(callback, "__self__", None) is not self._spider or not isinstance(
            callback, MethodType
        ):
            raise Unserialisable(field, f"{_described(callback)} is not a method of the spider")
        function = callback.__func__
        name = self._names.get(function)
        if name is None:
            name = self._names[function] = self._search(field, function)
        return name

    def _search(self, field: str, function: Any) -> str:
        own_name = getattr(function, "__name__", "")
        for name in (own_name, *dir(type(self._spider))):
            try:
                if self._method(name).__func__ is function:  # type: ignore[attr-defined]
                    return name
            except Unreadable:
                continue
        raise Unserialisable(field, f"{own_name!r} is no public way back to a method of the spider")

    # --- reading ----------------------------------------------------------------------------------

    def decode(self, payload: bytes) -> Request:
        """The request that `encode` gave *payload* for.

        Raises:
            Unreadable: With a reason fit for a dead letter.
        """
        try:
            plain = json.loads(payload)
        except (ValueError, RecursionError) as e:
            raise Unreadable(f"corrupt payload: {e}") from e
        if type(plain) is not dict:
            raise Unreadable("corrupt payload: no request")
        if plain.get("format", FORMAT) != FORMAT:
            raise Unreadable(f"written by a newer version (format {plain['format']!r})")
        try:
            return self._request(plain)
        except Unreadable:
            raise
        except (BadTag, RecursionError) as e:
            raise Unreadable(f"corrupt payload: {e}") from e
        except Exception as e:  # whatever a request class makes of its arguments
            raise Unreadable(f"cannot be made again: {type(e).__name__}: {e}") from e

    def _request(self, plain: dict[str, Any]) -> Request:
        cls = self._request_class(plain["class"]) if "class" in plain else Request
        known = _OWN_FIELDS.union(cls.attributes)
        if not plain.keys() <= known:
            raise Unreadable(f"corrupt payload: unknown field {min(plain.keys() - known)!r}")
        state = plain.pop("state", None)
        plain.pop("format", None)
        headers = plain.pop("headers", None)
        arguments: dict[str, Any] = {}
        for field, value in plain.items():
            if field in {"callback", "errback"}:
                arguments[field] = (
                    NO_CALLBACK if value == _NO_CALLBACK_NAME else self._method(value)
                )
            elif field == "body":
                arguments["body"] = _body(value)
            elif field != "class":
                arguments[field] = self._values.loaded(value) if type(value) in _NESTED else value
        # `verbatim_url` keeps the URL as it was stored: a second round of normalising could change
        # it.
        meta = arguments.get("meta") or {}
        verbatim = "verbatim_url" in meta
        arguments["meta"] = meta if verbatim else {"verbatim_url": True, **meta}
        if cls is not Request:
            arguments = _REQUEST_DEFAULTS | arguments
        request = cls(**arguments)
        if not verbatim:
            request.meta.pop("verbatim_url", None)
        if headers is not None or cls is not Request:
            request.headers = _headers(headers or {}, request.encoding)
        if state is not None:
            vars(request).update(self._values.loaded(state))
        return request

    @staticmethod
    def _request_class(name: Any) -> type[Request]:
        module_name, _, qualname = str(name).partition(":")
        found = imported(module_name, qualname)
        if not (isinstance(found, type) and issubclass(found, Request)):
            raise Unreadable(f"request class {name} is not there (any more)")
        return found

    def _method(self, name: Any) -> Callable[..., Any]:
        """The spider's method *name*: not what every spider has (but `parse`), no property."""
        method = self._methods.get(name) if type(name) is str else None
        if method is not None:
            return method
        function = (
            inspect.getattr_static(type(self._spider), name, None) if type(name) is str else None
        )
        of_every_spider = function is not None and getattr(Spider, name, None) is function
        if (
            type(function) is not FunctionType
            or (name.startswith("__") and name.endswith("__"))
            or (of_every_spider and name not in {"parse", "_parse"})
        ):
            raise Unreadable(
                f"{name!r:.100} is not a method of spider {self._spider.name} (any more)"
            )
        self._methods[name] = method = MethodType(function, self._spider)
        return method


def own_packages(settings: BaseSettings) -> frozenset[str]:
    """Top-level packages of the project: of its spiders, and the one that its settings are in."""
    modules = [*settings.getlist("SPIDER_MODULES"), os.environ.get("SCRAPY_SETTINGS_MODULE", "")]
    return frozenset(m.partition(".")[0] for m in modules) - {"", "scrapy"}


def holds_mutables(request: Request) -> bool:
    """May values inside *request* change after the yield, so that a stored copy differs?"""
    for values in (request.meta, request.cb_kwargs):
        for value in values.values():
            if type(value) not in _SCALARS:
                return True
    return bool(request.cookies)


_REQUEST_FIELDS: Final = frozenset(Request.attributes)
_NESTED: Final = (dict, list)
# Some request classes have other defaults (XmlRpcRequest posts and is not filtered): say what was
# not written.
_REQUEST_DEFAULTS: Final[dict[str, Any]] = {
    "method": "GET",
    "body": b"",
    "dont_filter": False,
    "encoding": "utf-8",
}


def _plain_headers(headers: Headers) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, values in headers.items():
        texts = [v.decode("latin-1") for v in values]
        plain[name.decode("latin-1")] = texts[0] if len(texts) == 1 else texts
    return plain


def _headers(plain: Any, encoding: str) -> Headers:
    headers = Headers(encoding=encoding)
    for name, values in plain.items():
        texts = [values] if type(values) is str else values
        headers[name.encode("latin-1")] = [v.encode("latin-1") for v in texts]
    return headers


def _plain_body(body: bytes) -> Any:
    """Text where it is text, so that a person can read it."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(body).decode("ascii")}


def _body(plain: Any) -> bytes:
    if type(plain) is str:
        return plain.encode("utf-8")
    return base64.b64decode(plain["base64"], validate=True)


def _largest(plain: dict[str, Any]) -> str:
    """The name of the field, inside meta and cb_kwargs too, that takes the most room."""
    sizes: dict[str, int] = {}
    for field, value in plain.items():
        if field in {"meta", "cb_kwargs"} and type(value) is dict:
            sizes.update({f"{field}[{k!r}]": _size(v) for k, v in value.items()})
        else:
            sizes[field] = _size(value)
    return max(sizes, key=lambda name: sizes[name])


def _size(value: Any) -> int:
    try:
        return len(repr(value))
    except (ValueError, RecursionError):  # a number of more than 4,300 digits
        return sys.maxsize


def _described(callback: Any) -> str:
    name = getattr(callback, "__qualname__", None)
    if name == "<lambda>" or (name and name.endswith(".<lambda>")):
        return "a lambda"
    kind = "function" if isinstance(callback, FunctionType) else type(callback).__name__
    return f"a {kind} ({name})" if name else f"a {kind}"

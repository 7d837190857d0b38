"""Requests come back as they were, or are refused by the name of what cannot be stored."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import functools
import json
import math
import threading
import uuid
import zoneinfo
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scrapy import Field, FormRequest, Item, Request, Spider
from scrapy.http import JsonRequest, XmlRpcRequest
from scrapy.http.request import NO_CALLBACK
from scrapy.utils.request import fingerprint

from extensions.codec import RequestCodec, Unreadable, Unserialisable, holds_mutables

RAN: list[str] = []


@dataclasses.dataclass
class Product:
    name: str
    price: Decimal | None = None

    def __post_init__(self) -> None:
        RAN.append(self.name)


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    tags: tuple[str, ...]


class Shop(Item):
    title = Field()


class Point(NamedTuple):
    x: int
    y: int


class Colour(enum.Enum):
    RED = "red"


class OwnRequest(Request):
    attributes = (*Request.attributes, "wait_s")

    def __init__(self, *args: Any, wait_s: float = 0.0, **kwargs: Any) -> None:
        self.wait_s = wait_s
        self.note = "as made"
        super().__init__(*args, **kwargs)


class Books(Spider):
    name = "books"
    fetch_all = False

    def parse_item(self, response: Any) -> None: ...

    def _private(self, response: Any) -> None: ...

    def __mangled(self, response: Any) -> None: ...

    def mangled(self) -> Any:
        return self.__mangled

    async def parse_async(self, response: Any) -> None: ...

    def failed(self, failure: Any) -> None: ...

    alias = parse_item

    @property
    def trap(self) -> None:
        RAN.append("property")

    @staticmethod
    def no_method(response: Any) -> None: ...


@pytest.fixture
def spider() -> Books:
    return Books()


@pytest.fixture
def codec(spider: Books) -> RequestCodec:
    return RequestCodec(spider=spider)


def same(one: Request, other: Request) -> None:
    assert type(one) is type(other)
    for name in one.attributes:
        assert getattr(one, name) == getattr(other, name), name
    assert getattr(one, "__dict__", None) == getattr(other, "__dict__", None)
    assert fingerprint(one) == fingerprint(other)


def back(codec: RequestCodec, request: Request) -> Request:
    restored = codec.decode(codec.encode(request))
    same(request, restored)
    return restored


def test_a_plain_request_is_short_and_readable(codec: RequestCodec, spider: Books) -> None:
    request = Request("http://a.example/x", callback=spider.parse_item)
    assert codec.encode(request) == b'{"url":"http://a.example/x","callback":"parse_item"}'


def test_everything_that_a_request_carries_comes_back(codec: RequestCodec, spider: Books) -> None:
    request = Request(
        "http://a.example/%7Ex?q=%C3%A9#frag",
        method="PUT",
        callback=spider.parse_async,
        errback=spider.failed,
        headers={"X-A": ["1", "2"], "X-B": "é", "X-C": b"\xff\x00"},
        body="héllo",
        cookies=[{"name": "n", "value": "v", "domain": "a.example", "path": "/"}],
        meta={"depth": 2, "deep": {"list": [1, None, True, 1.5]}},
        cb_kwargs={"page": 3},
        encoding="latin-1",
        priority=-5,
        dont_filter=True,
        flags=["x"],
    )
    restored = back(codec, request)
    assert restored.callback == spider.parse_async
    assert restored.headers.getlist("X-A") == [b"1", b"2"]


@pytest.mark.parametrize(
    "url",
    [
        "http://a.example/a b",
        "http://a.example/%41%zz",
        "data:,x",
        "http://ünï.example/ü",
        "http://a.example/./b/../c",
    ],
)
def test_urls_are_not_normalised_a_second_time(codec: RequestCodec, url: str) -> None:
    back(codec, Request(url))
    restored = back(codec, Request(url, meta={"verbatim_url": True}))
    assert restored.url == url
    assert "verbatim_url" not in back(codec, Request(url)).meta


def test_bodies_that_are_no_text_come_back(codec: RequestCodec) -> None:
    back(codec, Request("http://a.example/", method="POST", body=b"\xff\xfe\x00"))


@pytest.mark.parametrize("name", ["parse", "parse_item", "_private", "parse_async"])
def test_callbacks_are_methods_by_name(codec: RequestCodec, spider: Books, name: str) -> None:
    restored = back(codec, Request("http://a.example/", callback=getattr(spider, name)))
    assert restored.callback == getattr(spider, name)


def test_a_mangled_name_finds_its_method(codec: RequestCodec, spider: Books) -> None:
    back(codec, Request("http://a.example/", callback=spider.mangled()))


def test_a_request_without_a_callback_ever_comes_back(codec: RequestCodec) -> None:
    assert back(codec, Request("http://a.example/", callback=NO_CALLBACK)).callback is NO_CALLBACK


def test_an_errback_alone_comes_back(codec: RequestCodec, spider: Books) -> None:
    restored = back(codec, Request("http://a.example/", errback=spider.failed))
    assert (restored.callback, restored.errback) == (None, spider.failed)


@pytest.mark.parametrize(
    "value",
    [
        (1, "two", (3,)),
        b"\x00\xff",
        bytearray(b"x"),
        {1, 2},
        frozenset({"a"}),
        {1: "int key", (2, 3): "tuple key", None: 0},
        {"$": "tuple", "v": [1]},
        {"$": "object", "class": "os:system"},
        dt.datetime(2026, 11, 30, 12, 0, 1, 5),  # noqa: DTZ001
        dt.datetime(2026, 11, 30, tzinfo=dt.UTC),
        dt.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=zoneinfo.ZoneInfo("Europe/Berlin")),
        dt.date(2026, 1, 2),
        dt.time(3, 4, 5, 6, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        dt.timedelta(days=-1, microseconds=3),
        Decimal("1.10"),
        uuid.UUID(int=5),
        complex(1, -2),
        float("inf"),
        10**100,
        "\ud800 lone surrogate, \u2028 and \x00",
        Product("x", Decimal(2)),
        Frozen(("a", "b")),
        Shop(title="t"),
        Point(1, 2),
        Colour.RED,
        [Product("nested")],
    ],
    ids=repr,
)
def test_values_come_back_equal_type_and_all(codec: RequestCodec, value: Any) -> None:
    restored = back(codec, Request("http://a.example/", meta={"v": value}, cb_kwargs={"v": value}))
    assert restored.meta["v"] == value
    assert type(restored.meta["v"]) is type(value)
    assert repr(restored.cb_kwargs["v"]) == repr(value)


def test_nan_comes_back_as_nan(codec: RequestCodec) -> None:
    restored = codec.decode(codec.encode(Request("http://a.example/", meta={"v": float("nan")})))
    assert math.isnan(restored.meta["v"])


def test_loading_a_dataclass_runs_none_of_its_code(codec: RequestCodec) -> None:
    payload = codec.encode(Request("http://a.example/", meta={"v": Product("quiet")}))
    RAN.clear()
    codec.decode(payload)
    assert RAN == []


@pytest.mark.parametrize(
    "request_",
    [
        FormRequest("http://a.example/", formdata={"a": "1", "b": ["2", "3"]}),
        FormRequest("http://a.example/?x=1", method="GET", formdata={"a": "1"}),
        JsonRequest("http://a.example/", data={"b": 1, "a": [None]}),
        JsonRequest("http://a.example/", data=[1], dumps_kwargs={"sort_keys": False, "indent": 1}),
        JsonRequest("http://a.example/"),
        XmlRpcRequest("http://a.example/", methodname="m", params=("p",)),
        XmlRpcRequest("http://a.example/", method="GET", body="b", dont_filter=False),
        OwnRequest("http://a.example/", wait_s=1.5, method="POST", body=b"x"),
    ],
    ids=repr,
)
def test_request_classes_come_back_ready_to_send(codec: RequestCodec, request_: Request) -> None:
    back(codec, request_)


def test_attributes_that_a_class_does_not_declare_come_back_too(codec: RequestCodec) -> None:
    request = OwnRequest("http://a.example/")
    request.note = "changed"
    assert back(codec, request).note == "changed"  # type: ignore[attr-defined]


def test_headers_that_were_taken_out_of_a_json_request_stay_out(codec: RequestCodec) -> None:
    request = JsonRequest("http://a.example/", data=1)
    del request.headers["Accept"]
    back(codec, request)


class Other:
    def parse(self, response: Any) -> None: ...


def local_class() -> type[Request]:
    class Local(Request):
        pass

    return Local


REFUSED: list[tuple[str, str, Any]] = [
    ("callback", "a lambda", lambda s: Request("http://a.example/", callback=lambda r: None)),
    ("callback", "a method", lambda s: Request("http://a.example/", callback=Other().parse)),
    ("callback", "a method", lambda s: Request("http://a.example/", callback=Books().parse_item)),
    (
        "callback",
        "a partial",
        lambda s: Request("http://a.example/", callback=functools.partial(s.parse_item)),
    ),
    ("callback", "a function", lambda s: Request("http://a.example/", callback=s.no_method)),
    ("errback", "a lambda", lambda s: Request("http://a.example/", errback=lambda f: None)),
    (
        "cb_kwargs['g']",
        "generator",
        lambda s: Request("http://a.example/", cb_kwargs={"g": (i for i in "ab")}),
    ),
    (
        "meta['a']['b'][1]",
        "lock",
        lambda s: Request("http://a.example/", meta={"a": {"b": [0, threading.Lock()]}}),
    ),
    (
        "meta['big']",
        "5000",
        lambda s: Request("http://a.example/", meta={"small": 1, "big": "x" * 5_000_000}),
    ),
    ("meta['n']", "digits", lambda s: Request("http://a.example/", meta={"n": 10**5000})),
    (
        "meta['c']",
        "trusted",
        lambda s: Request("http://a.example/", meta={"c": uuid.SafeUUID.safe}),
    ),
    ("class", "top level", lambda s: local_class()("http://a.example/")),
    ("cookies['a']", "object", lambda s: Request("http://a.example/", cookies={"a": object()})),  # type: ignore[dict-item]
    (
        "dumps_kwargs['cls']",
        "type",
        lambda s: JsonRequest("http://a.example/", dumps_kwargs={"cls": json.JSONEncoder}),
    ),
]


@pytest.mark.parametrize(("field", "why", "make"), REFUSED, ids=[f"{f} {w}" for f, w, _ in REFUSED])
def test_what_cannot_be_stored_is_named(
    codec: RequestCodec, spider: Books, field: str, why: str, make: Any
) -> None:
    with pytest.raises(Unserialisable) as refused:
        codec.encode(make(spider))
    assert refused.value.field == field
    assert why in refused.value.why


def test_a_value_that_contains_itself_is_named(codec: RequestCodec) -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(Unserialisable, match="contains itself"):
        codec.encode(Request("http://a.example/", meta={"loop": loop}))


def test_transient_meta_stays_out(spider: Books) -> None:
    codec = RequestCodec(spider=spider, transient_meta={"lease"})
    request = Request("http://a.example/", meta={"lease": object(), "depth": 1})
    assert codec.decode(codec.encode(request)).meta == {"depth": 1}


def test_a_later_change_does_not_reach_what_was_stored(codec: RequestCodec) -> None:
    tags = ["a"]
    request = Request("http://a.example/", cb_kwargs={"tags": tags})
    payload = codec.encode(request)
    tags.append("b")
    assert holds_mutables(request)
    assert not holds_mutables(Request("http://a.example/", meta={"depth": 1}))
    assert codec.decode(payload).cb_kwargs == {"tags": ["a"]}


TAMPERED = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[]",
    b"null",
    b"{}",
    b'{"url":5}',
    b'{"url":"no-scheme"}',
    b'{"url":"http://a/","callback":"gone"}',
    b'{"url":"http://a/","callback":"__init__"}',
    b'{"url":"http://a/","callback":"__class__"}',
    b'{"url":"http://a/","callback":"trap"}',
    b'{"url":"http://a/","callback":"no_method"}',
    b'{"url":"http://a/","callback":"fetch_all"}',
    b'{"url":"http://a/","callback":"from_crawler"}',
    b'{"url":"http://a/","callback":"update_settings"}',
    b'{"url":"http://a/","callback":["parse"]}',
    b'{"url":"http://a/","callback":"logger.info"}',
    b'{"url":"http://a/","class":"os:system"}',
    b'{"url":"http://a/","class":"antigravity:Request"}',
    b'{"url":"http://a/","class":"subprocess:Popen"}',
    b'{"url":"http://a/","class":5}',
    b'{"url":"http://a/","format":2}',
    b'{"url":"http://a/","unknown":1}',
    b'{"url":"http://a/","meta":5}',
    b'{"url":"http://a/","priority":"high"}',
    b'{"url":"http://a/","headers":["x"]}',
    b'{"url":"http://a/","headers":{"x":5}}',
    b'{"url":"http://a/","body":{"base64":"?"}}',
    b'{"url":"http://a/","meta":{"v":{"$":"eval","v":"1"}}}',
    b'{"url":"http://a/","meta":{"v":{"$":["tuple"],"v":"1"}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"tuple","v":"1"}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"tuple"}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"set","v":[[]]}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"float","v":"1"}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"datetime","v":["x",null,0]}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"datetime","v":["2026-01-01","../../etc/passwd",0]}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"object","class":"subprocess:Popen","v":{"args":"x"}}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"object","class":"tests.test_codec:Books","v":{}}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"object","class":"tests.test_codec:Product","v":{"hack":1}}}}',
    b'{"url":"http://a/","meta":{"v":{"$":"object","class":"tests.test_codec:Gone","v":{}}}}',
    b'{"url":"http://a/","meta":' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    b'{"url":"http://a/","meta":' + b'{"a":' * 900 + b"1" + b"}" * 900 + b"}",
]


@pytest.mark.parametrize("payload", TAMPERED, ids=lambda p: p[:60].decode("latin-1"))
def test_a_tampered_row_is_unreadable_and_runs_nothing(codec: RequestCodec, payload: bytes) -> None:
    RAN.clear()
    with pytest.raises(Unreadable) as unreadable:
        codec.decode(payload)
    assert unreadable.value.reason
    assert RAN == []


def test_a_renamed_callback_is_readable_again_when_it_is_back(spider: Books) -> None:
    payload = b'{"url":"http://a.example/","callback":"parse_item"}'
    with pytest.raises(Unreadable, match="'parse_item' is not a method of spider other"):
        RequestCodec(spider=Spider(name="other")).decode(payload)
    assert RequestCodec(spider=spider).decode(payload).callback == spider.parse_item


def types_of(value: Any) -> Any:
    if isinstance(value, dict):
        return [(types_of(k), types_of(v)) for k, v in value.items()]
    if isinstance(value, list | tuple):
        return type(value), [types_of(v) for v in value]
    return type(value)


plain_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=20)
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
    | st.decimals(allow_nan=False)
    | st.uuids(),
    lambda children: (
        st.lists(children, max_size=4)
        | st.tuples(children, children)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.just("$"), children, max_size=4)
        | st.frozensets(st.integers() | st.text(max_size=3), max_size=4)
    ),
    max_leaves=12,
)


@given(meta=st.dictionaries(st.text(max_size=5), plain_values, max_size=4))
def test_any_plain_value_survives(meta: dict[str, Any]) -> None:
    codec = RequestCodec(spider=Books())
    request = Request("http://a.example/", meta=meta, cb_kwargs=meta)
    restored = codec.decode(codec.encode(request))
    assert restored.meta == meta
    assert types_of(restored.cb_kwargs) == types_of(meta)


@given(
    method=st.sampled_from(["GET", "POST", "PATCH"]),
    body=st.binary(max_size=50),
    headers=st.dictionaries(
        st.text("abcXYZ-", min_size=1, max_size=8),
        st.lists(st.binary(max_size=8), min_size=1, max_size=3),
        max_size=3,
    ),
    priority=st.integers(),
    dont_filter=st.booleans(),
    path=st.text(max_size=20),
)
def test_any_request_survives(  # noqa: PLR0917
    method: str,
    body: bytes,
    headers: dict[str, list[bytes]],
    priority: int,
    dont_filter: bool,
    path: str,
) -> None:
    codec = RequestCodec(spider=Books())
    request = Request(
        f"http://a.example/{path}",
        method=method,
        body=body,
        headers=headers,
        priority=priority,
        dont_filter=dont_filter,
    )
    same(request, codec.decode(codec.encode(request)))


@given(payload=st.binary(max_size=200))
def test_no_bytes_at_all_raise_anything_but_unreadable(payload: bytes) -> None:
    with pytest.raises(Unreadable):
        RequestCodec(spider=Books()).decode(payload)

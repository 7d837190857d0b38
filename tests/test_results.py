"""What leaves the item pipeline is strict JSON, or a named refusal."""

import dataclasses
import datetime as dt
import decimal
import json
import uuid

import pytest
import scrapy
from hypothesis import given, settings
from hypothesis import strategies as st

from extensions.results import UnencodableItem, encode_item


@dataclasses.dataclass
class Price:
    amount: decimal.Decimal


class Product(scrapy.Item):
    name = scrapy.Field()
    price = scrapy.Field()


def strict(text):
    def refuse(word):
        raise AssertionError(word)

    return json.loads(text, parse_constant=refuse)


def test_values_that_json_has_no_word_for():
    item = {
        "at": dt.datetime(2026, 11, 30, 19, 0, tzinfo=dt.UTC),
        "day": dt.date(2026, 11, 30),
        "took": dt.timedelta(seconds=1.5),
        "price": decimal.Decimal("19.90"),
        "id": uuid.UUID(int=1),
        "tags": {"b", "a"},
        "offer": Price(decimal.Decimal("1.10")),
        "product": Product(name="x", price=None),
    }
    assert strict(encode_item(item)) == {
        "at": "2026-11-30T19:00:00+00:00",
        "day": "2026-11-30",
        "took": 1.5,
        "price": "19.90",
        "id": "00000000-0000-0000-0000-000000000001",
        "tags": ["a", "b"],
        "offer": {"amount": "1.10"},
        "product": {"name": "x", "price": None},
    }


def test_line_separators_of_every_kind_are_escaped():
    text = encode_item({"t": "a\u2028b\u2029c\x85d\ne\u000bf"})
    assert text.splitlines() == [text]
    assert strict(text) == {"t": "a\u2028b\u2029c\x85d\ne\u000bf"}


def test_other_characters_stay_as_they_are():
    assert encode_item({"t": "žluť 漢字 🐎"}) == '{"t": "žluť 漢字 🐎"}'


CYCLE = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"x", "x.y is of type bytes"),
        (float("nan"), "x.y is nan, which JSON has not"),
        (float("-inf"), "x.y is -inf"),
        (decimal.Decimal("NaN"), "x.y is of type Decimal"),
        ("a\ud800", "x.y holds half a surrogate pair"),
        ([1, {"z": b""}], r"x.y\[1\].z is of type bytes"),
        (object(), "x.y is of type object"),
        (CYCLE, "contains itself"),
        ({("a",): 1}, "x.y has a key of type tuple"),
    ],
)
def test_refused_by_name(value, words):
    with pytest.raises(UnencodableItem, match=words):
        encode_item({"x": {"y": value}})


def test_a_number_of_5000_digits_is_refused():
    with pytest.raises(UnencodableItem, match="cannot be JSON"):
        encode_item({"n": 10**5000})


def test_a_surrogate_in_a_key_is_refused():
    with pytest.raises(UnencodableItem):
        encode_item({"\udc00": 1})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(max_size=3),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(), json_values))
def test_whatever_comes_is_one_strict_line_or_refused(item):
    try:
        text = encode_item(item)
    except UnencodableItem:
        return
    assert text.splitlines() == [text]
    assert text.encode()
    assert strict(text) == item

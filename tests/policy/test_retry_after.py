from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.retry_after import parse_http_date, parse_retry_after

NOW = 1_796_000_000.0  # 2026-11-30, a Monday


def date(offset_s: float) -> bytes:
    return formatdate(NOW + offset_s, usegmt=True).encode()


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [(b"3", 3.0), (b" 120\t", 120.0), (b"007", 7.0), (b"999999999999999999", 1e18)],
)
def test_seconds(value, wait_s):
    """Plain ASCII digits are seconds, however many of them."""
    assert parse_retry_after([value], now_at=NOW) == wait_s


@pytest.mark.parametrize(
    "value",
    [
        b"0",
        b"000",
        b"-5",
        b"+2",
        b"1_0",
        "\uff13".encode(),
        b"12.5",
        b"1e3",
        b"120, 60",
        b"",
        b"   ",
        b"\xff\xfe",
        b"soon",
        b"3\n4",
        b"99999999999999999999",
        b"9" * 5000,
        b"Wed, 32 Oct 2099 07:28:00 GMT",
        b"Wed, 21 Oct 2099 25:28:00 GMT",
        b"Wed, 21 Oct 2099 07:28:61 GMT",
        b"Wed, 21 Oct 0000 07:28:00 GMT",
        b"Wed, 21 Oct 2099 07:28:00",
        b"Wed, 21 Oct 2099 07:28:00 +0200",
    ],
)
def test_not_usable(value):
    """Zero and all that the grammar does not allow read as if the field were absent."""
    assert parse_retry_after([value], now_at=NOW) is None


def test_absent():
    """No line, no wait."""
    assert parse_retry_after([], now_at=NOW) is None


def test_date_ahead_and_past():
    """A date ahead is waited for; a date in the past says nothing."""
    assert parse_retry_after([date(3)], now_at=NOW) == pytest.approx(3)
    assert parse_retry_after([date(-3)], now_at=NOW) is None


def test_date_is_measured_from_the_servers_own_clock():
    """A server an hour ahead of us that asks for 3 s gets 3 s, not an hour."""
    wait_s = parse_retry_after([date(3603)], now_at=NOW, server_date=date(3600))
    assert wait_s == pytest.approx(3)
    assert parse_retry_after([date(3)], now_at=NOW, server_date=b"rubbish") == pytest.approx(3)


def test_old_date_forms():
    """RFC 850 and asctime dates are obsolete but must be read."""
    rfc850 = b"Sunday, 06-Nov-94 08:49:37 GMT"
    asctime = b"Sun Nov  6 08:49:37 1994"
    fixdate = b"Sun, 06 Nov 1994 08:49:37 GMT"
    times = {parse_http_date(value, now_at=NOW) for value in (rfc850, asctime, fixdate)}
    assert times == {784111777.0}
    assert parse_http_date(b"Monday, 30-Nov-26 00:53:23 GMT", now_at=NOW) == pytest.approx(
        NOW, abs=3600
    )


def test_the_end_of_time_is_a_number():
    """The last date that exists does not overflow."""
    wait_s = parse_retry_after([b"Fri, 31 Dec 9999 23:59:59 GMT"], now_at=NOW)
    assert wait_s is not None
    assert wait_s > 1e11


def test_two_lines():
    """Two valid lines: the longer wait. One of them malformed: neither is believed."""
    assert parse_retry_after([b"3", b"5"], now_at=NOW) == 5
    assert parse_retry_after([b"3", b"soon"], now_at=NOW) is None


@given(st.lists(st.binary(max_size=60), max_size=3), st.none() | st.binary(max_size=40))
def test_never_raises(values, server_date):
    """Whatever bytes a server sends, the answer is None or a finite wait over zero."""
    wait_s = parse_retry_after(values, now_at=NOW, server_date=server_date)
    assert wait_s is None or 0 < wait_s < float("inf")

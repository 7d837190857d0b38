"""The sum comes out, and says so when it does not."""

from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.account import Account

numbers = st.integers(0, 10**9)


@given(st.tuples(numbers, numbers, numbers, numbers, numbers, numbers))
def test_a_request_more_in_any_place_shows(parts: tuple[int, ...]) -> None:
    """The difference is zero for a true account and counts what is missing else."""
    names = ("got", "dead", "skipped", "pending", "delayed", "in_flight")
    places = dict(zip(names, parts, strict=True))
    assert Account(asked=sum(parts), **places).difference == 0
    assert Account(asked=sum(parts) + 2, **places).difference == 2
    account = Account(asked=sum(parts), unread=7, **places)
    assert 0 <= account.done_share <= 1
    assert account.known == sum(parts) + 7


def test_nothing_asked_is_nothing_done() -> None:
    """No division by zero before the first request."""
    assert Account().done_share == 0

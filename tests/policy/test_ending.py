"""The exit code's table."""

from __future__ import annotations

import pytest

from extensions.policy.account import Account
from extensions.policy.ending import Ending, Exit, exit_code, fail_on, worst

ALL = Account(asked=100, got=100)
LOSS = Account(asked=100, got=97, dead=3)
REST = Account(asked=100, got=50, pending=50)


@pytest.mark.parametrize(
    ("ending", "words", "code"),
    [
        (Ending(reason="finished", account=ALL), "lost", Exit.COMPLETE),
        (Ending(reason="finished", account=LOSS), "lost", Exit.INCOMPLETE),
        (Ending(reason="finished", account=LOSS), "never", Exit.COMPLETE),
        (Ending(reason="finished", account=LOSS), "lost>3%", Exit.COMPLETE),
        (Ending(reason="finished", account=LOSS), "lost>2.9%", Exit.INCOMPLETE),
        (Ending(reason="finished", account=LOSS), ["lost>5", "pages<98"], Exit.INCOMPLETE),
        (Ending(reason="finished", account=ALL, lost_items=1), "lost", Exit.INCOMPLETE),
        (Ending(reason="finished", account=ALL, answers=10, refused=3), "refused>20%", 3),
        (Ending(reason="finished", account=ALL), "refused>20%", Exit.COMPLETE),
        (Ending(reason="shutdown", account=REST), "lost", Exit.STOPPED),
        (Ending(reason="closespider_pagecount", account=LOSS), "lost", Exit.STOPPED),
        (Ending(reason="store_failed", account=LOSS), "lost", Exit.TRY_AGAIN),
        (Ending(reason="finished", account=LOSS, unwritten=5), "lost", Exit.TRY_AGAIN),
        (Ending(reason="finished", account=LOSS, source_failed=True), "lost", Exit.FAILED),
        (Ending(reason="scheduler_failed", account=ALL), "never", Exit.FAILED),
    ],
)
def test_the_table(ending: Ending, words: str | list[str], code: int) -> None:
    """Each way to end has its code."""
    found, why = exit_code(ending, fail_on(words))
    assert found == code
    assert why


def test_a_complete_crawl_that_is_not_enough_is_not_called_incomplete() -> None:
    """The verdict beside it says COMPLETE."""
    code, why = exit_code(Ending(reason="finished", account=ALL), fail_on("pages<1000"))
    assert code == Exit.INCOMPLETE
    assert why == 'complete, but not enough (SLUICE_FAIL_ON = "pages<1000")'


@pytest.mark.parametrize(
    ("account", "kept", "said"), [(REST, True, True), (REST, False, False), (LOSS, True, False)]
)
def test_only_what_is_left_and_kept_is_called_so(
    account: Account, *, kept: bool, said: bool
) -> None:
    """Without JOBDIR the rest is gone."""
    ending = Ending(reason="shutdown", account=account, kept=kept)
    assert ("kept" in exit_code(ending, ())[1]) is said


def test_the_code_that_asks_for_most_attention_wins() -> None:
    """1, 2, 75, 4, 3, 0: several spiders in one process have one exit code."""
    assert worst([0, 3, 4, 75, 2, 1]) == 1
    assert worst([0, 3, 4, 75]) == 75
    assert worst([3, 0, 4]) == 4
    assert worst([0, 3]) == 3
    assert worst([0]) == worst([]) == 0


@pytest.mark.parametrize("words", ["lots", "lost>", "pages<1e", ["never", "lost"], "", "loss>1%"])
def test_what_is_not_understood_is_refused_with_what_would_do(words: str | list[str]) -> None:
    """A typo must not switch the check off."""
    with pytest.raises(ValueError, match=r"SLUICE_FAIL_ON.*lost>1%"):
        fail_on(words)

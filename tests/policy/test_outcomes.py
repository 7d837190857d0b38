"""The last outcomes of a domain: the newest first, and bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extensions.policy.outcome import Outcome
from extensions.policy.outcomes import KEPT, MAX_WORDS, Outcomes, Words

endings = st.tuples(
    st.floats(0, 1e8), st.sampled_from(["200", "429", "timeout"]), st.sampled_from(list(Outcome)),
    st.floats(0, 1000), st.floats(0, 1e6),
)  # fmt: skip


@given(st.lists(endings, max_size=3 * KEPT))
def test_the_last_fifty_come_back_newest_first(added: list[tuple]) -> None:
    """Moments to a tenth of a second, the rest to three digits; a very long wait is cut to 18 hours."""
    words, kept = Words(), Outcomes()
    for after_s, what, outcome, latency_s, held_s in added:
        kept.add(after_s, words.number(what), outcome, latency_s=latency_s, held_s=held_s)
    expected = added[::-1][:KEPT]
    found = list(kept.newest_first(words))
    assert len(found) == len(kept) == len(expected)
    for seen, (after_s, what, outcome, latency_s, held_s) in zip(found, expected, strict=True):
        assert seen.what == what
        assert seen.outcome is outcome
        assert seen.after_s == pytest.approx(after_s, abs=0.11)
        assert seen.latency_s == pytest.approx(latency_s, rel=1e-3, abs=1e-6)
        assert seen.held_s == pytest.approx(min(held_s, 65_504), rel=1e-3, abs=1e-6)
    for outcome in Outcome:
        assert kept.count(outcome) == sum(ending[2] is outcome for ending in expected)


def test_words_are_bounded() -> None:
    """A site that answers with ever new texts fills no memory."""
    words = Words()
    numbers = {words.number(f"ban page: {n}") for n in range(3 * MAX_WORDS)}
    assert len(numbers) == MAX_WORDS
    assert words.text(words.number("ban page: 2999")) == "other"

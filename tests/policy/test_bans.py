"""What counts as a ban page."""

from __future__ import annotations

import re

import pytest

from extensions.policy.bans import HEAD_CHARS, KNOWN_TITLES, BanRules

WALL = "<html><head><title>\n Just a moment... </title></head>"


@pytest.mark.parametrize(
    ("status", "head", "verdict"),
    [
        (200, WALL, "title 'Just a moment...'"),
        (200, "<title>Just a moment in history</title>", None),
        (200, "<p>Just a moment...</p>", None),
        (403, "", "status 403"),
        (404, "", None),
        (200, "<p>please solve the captcha</p>", "body 'captcha'"),
    ],
)
def test_status_title_and_body_rules(status: int, head: str, verdict: str | None) -> None:
    rules = BanRules(statuses=[403], titles=KNOWN_TITLES, patterns=["captcha"])
    assert rules.verdict(status, head) == verdict


def test_without_text_rules_no_page_is_read() -> None:
    assert not BanRules(statuses=[403]).reads_pages
    assert BanRules(patterns=["x"]).reads_pages


def test_a_broken_expression_is_refused_though_joined_it_might_pass() -> None:
    with pytest.raises(re.error):
        BanRules(patterns=["a(", "b)"])


def test_a_long_page_costs_no_more_than_its_head() -> None:
    page = "x" * HEAD_CHARS
    assert BanRules(patterns=["captcha$"]).verdict(200, page) is None

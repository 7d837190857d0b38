"""The page's colours, from its style sheet: WCAG 2.2 level AA in both schemes."""

from __future__ import annotations

import re

import pytest

from extensions.pagefiles import static

TEXT, MARK = 4.5, 3.0
TEXTS = ("ink", "ink2", "warn", "bad")
MARKS = ("data", "data-soft", "second", "warn-mark", "bad-mark", "ok", "focus", "ink2")
GROUNDS = ("bg", "surface", "hover")


def schemes() -> dict[str, dict[str, str]]:
    light, dark = re.findall(r":root\{(.*?)\}", static("page.css"), re.DOTALL)
    read = [dict(re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]{6})", part)) for part in (light, dark)]
    assert set(read[0]) == set(read[1])
    return {"light": read[0], "dark": read[1]}


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_formula_is_that_of_the_guidelines() -> None:
    """Black on white is 21 to 1, and #767676 on white just passes."""
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("ground", GROUNDS)
def test_text_and_marks_stand_out(scheme: str, ground: str) -> None:
    """Text 4.5 to 1, what carries meaning without being text 3 to 1, on every ground they stand on."""
    colours = schemes()[scheme]
    found = {name: round(contrast(colours[name], colours[ground]), 2) for name in {*TEXTS, *MARKS}}
    assert {name: ratio for name, ratio in found.items() if name in TEXTS and ratio < TEXT} == {}
    assert {name: ratio for name, ratio in found.items() if name in MARKS and ratio < MARK} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_colour_comes_from_the_scheme(scheme: str) -> None:
    """No colour of a rule escapes the check above, but shadows and the print's white."""
    rules = re.sub(r":root\{.*?\}", "", static("page.css"), flags=re.DOTALL)
    assert set(re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\([^)]*\)", rules)) <= {
        "#fff",
        "rgba(0,0,0,.35)",
    }
    used = set(re.findall(r"var\(--([\w-]+)\)", rules))
    assert used <= set(schemes()[scheme])

"""Field rules: what to take out of a page, in a JSON file for who need not write Python.

    {"price": "p.price::text", "tags": ["a.tag"], "author": "xpath://meta[@name='author']/@content"}

A text is a CSS selector, or an XPath expression after `xpath:`. It gives the first match, or null.
In a list it gives all matches. A rule that matches an element gives the element's text, with runs
of white space made one space.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from parsel import Selector
from parsel.csstranslator import HTMLTranslator

from .arguments import BadArgument

if TYPE_CHECKING:
    from scrapy.http import Response

XPATH = "xpath:"
CSS = "css:"


@dataclass(slots=True, frozen=True)
class FieldRule:
    """One field: where it stands in a page, and whether all matches are wanted or the first."""

    name: str
    xpath: str
    wants_all: bool


@dataclass(slots=True, frozen=True)
class FieldRules:
    """The rules of one file, ready to be applied."""

    rules: tuple[FieldRule, ...]

    @classmethod
    def load(cls, path: str) -> FieldRules:
        """Read and check the rules in *path*.

        Raises:
            BadArgument: No such file, no JSON, or a rule that is neither CSS nor XPath; the message
                names the place.
        """
        try:
            written = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            raise BadArgument(f"fields={path}: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise BadArgument(f"fields={path}: not UTF-8 text") from None
        except (ValueError, RecursionError) as error:
            raise BadArgument(f"fields={path}: no JSON: {error}") from None
        if not isinstance(written, dict) or not written:
            raise BadArgument(f'fields={path}: give an object such as {{"price": "p.price::text"}}')
        return cls(tuple(_rule(path, name, rule) for name, rule in written.items()))

    def extract(self, response: Response) -> dict[str, Any]:
        """The fields of *response*; empty for an answer that is no text."""
        selector = getattr(response, "selector", None)
        if not isinstance(selector, Selector) or selector.type == "json":
            return {}
        return {rule.name: _value(selector, rule) for rule in self.rules}


def _rule(path: str, name: str, written: object) -> FieldRule:
    wants_all = isinstance(written, list)
    text = written[0] if isinstance(written, list) and len(written) == 1 else written
    if not isinstance(text, str) or not text.strip():
        raise BadArgument(
            f'fields={path}: {name}: give "SELECTOR", or ["SELECTOR"] for all matches'
        )
    selector = Selector(text="<html></html>", type="html")
    try:
        if text.startswith(XPATH):
            xpath = text.removeprefix(XPATH).strip()
        else:
            xpath = HTMLTranslator().css_to_xpath(text.removeprefix(CSS).strip())
        selector.xpath(xpath)
    except (ValueError, SyntaxError) as error:
        kind = "XPath" if text.startswith(XPATH) else "CSS"
        raise BadArgument(f"fields={path}: {name}: no {kind}: {error}") from None
    return FieldRule(name=name, xpath=xpath, wants_all=wants_all)


def _value(selector: Selector, rule: FieldRule) -> Any:
    matches = selector.xpath(rule.xpath)
    if rule.wants_all:
        return [text for text in map(_text, matches) if text]
    return next((text for text in map(_text, matches) if text), None)


def _text(match: Selector) -> str | None:
    if hasattr(match.root, "tag"):
        return match.xpath("normalize-space()").get()
    return " ".join(str(match.root).split())

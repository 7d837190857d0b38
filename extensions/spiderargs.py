"""What a spider was made with, so that a replay can make it the same way.

The rule it keeps: an argument is kept only if it can be given again on a command line. Scrapy
hands the arguments to the spider and keeps no copy, so they are read from the command line; a crawl
that a script started is asked for the spider's own attributes instead.
"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy import Spider

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOT_ARGUMENTS = {"name", "crawler", "settings"}


def spider_arguments(spider: Spider, argv: Sequence[str] | None = None) -> dict[str, str]:
    """The arguments of *spider*: those of ``scrapy crawl`` (Scrapyd's too), or its attributes."""
    words = list(sys.argv if argv is None else argv)
    if _is_crawl_of(spider.name, words):
        return _given(words)
    return _attributes(spider)


def _is_crawl_of(name: str, words: list[str]) -> bool:
    program = Path(words[0]).name if words else ""
    runs_scrapy = program in {"scrapy", "scrapy.exe", "__main__.py", "runner.py", "-m", "-c"}
    return runs_scrapy and "crawl" in words[1:3] and name in words


def _given(words: list[str]) -> dict[str, str]:
    """``-a NAME=VALUE``, also written ``-aNAME=VALUE``."""
    found: dict[str, str] = {}
    texts = [
        following if word == "-a" else word[2:]
        for word, following in zip(words, [*words[1:], ""], strict=True)
        if word.startswith("-a")
    ]
    for text in texts:
        name, equals, value = text.partition("=")
        if equals:
            found[name] = value
    return found


def _attributes(spider: Spider) -> dict[str, str]:
    own = {k: v for k, v in vars(spider).items() if isinstance(v, str) and k not in _NOT_ARGUMENTS}
    init = type(spider).__init__
    if init is Spider.__init__:
        return own
    return {name: own[name] for name in inspect.signature(init).parameters if name in own}

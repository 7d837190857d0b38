"""Which pages links reach, found from the files alone: an own walk, independent of Scrapy's parsers."""

from __future__ import annotations

import re
from functools import lru_cache
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

if TYPE_CHECKING:
    from pathlib import Path

ORIGIN = "http://site"
_HREF = re.compile(r"<a\s[^>]*?href=\"([^\"#]+)")


@lru_cache(maxsize=1)
def reachable(root: Path, start: str) -> frozenset[str]:
    """Paths of the HTML files below *root* that links reach from *start*, by a walk over the files."""
    found, todo = {start}, [start]
    while todo:
        page = todo.pop()
        for link in set(_HREF.findall((root / page).read_text(encoding="utf-8"))):
            target = urlsplit(urldefrag(urljoin(f"{ORIGIN}/{page}", unescape(link))).url)
            path = unquote(target.path).lstrip("/")
            if f"{target.scheme}://{target.netloc}" != ORIGIN or path in found:
                continue
            if path.endswith(".html") and (root / path).is_file():
                found.add(path)
                todo.append(path)
    return frozenset(found)

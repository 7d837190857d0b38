"""Tables in README.md and docs/ that are made from the code. `python -m tests.documents` renews them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING

from extensions.book import Book
from extensions.config import PREFIX, Config
from extensions.metrics import CrawlMetrics
from extensions.policy.bottleneck import Cause
from extensions.sampler import Sampler
from extensions.snapshot import DomainNow
from tests.test_sampler import PlainView

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_TABLE = re.compile(r"(<!-- settings: (?P<names>[^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
_METRICS = re.compile(r"(<!-- metrics -->\n).*?(<!-- end -->)", re.DOTALL)
_ENDING = {"counter": "_total", "info": "_info"}
_HEAD = "| setting | default | what it does |\n|---|---|---|\n"


def renewed(text: str) -> str:
    """*text* with its tables as the code has them."""
    text = _TABLE.sub(lambda m: m[1] + settings_table(m["names"]) + m[3], text)
    return _METRICS.sub(lambda m: m[1] + metrics_table() + m[2], text)


def settings_table(names: str) -> str:
    """The settings with these *names* (``all``, or without prefix and with commas) as Markdown."""
    fields = {field.name.upper(): field for field in dataclasses.fields(Config)}
    wanted = list(fields) if names == "all" else [name.strip() for name in names.split(",")]
    return _HEAD + "".join(
        f"| `{PREFIX}{name}` | `{fields[name].metadata['default']!r}` "
        f"| {' '.join(fields[name].metadata['doc'].split())} |\n"
        for name in wanted
    )


def metrics_table() -> str:
    """What a crawl with a list of proxies has to scrape, as Markdown."""
    book = Book()
    book.buried("a.example", "timeout", url="http://a.example/", now_at=1.0)
    book.left_out("a.example", "robots.txt")
    view = PlainView({"a.example": DomainNow(cause=Cause.PACE, pending=1)}, proxies=1)
    sampler = Sampler(view=view, book=book, spider="pages", job="one")
    for _ in range(2):  # the second knows what the first one shows
        sampler.tick()
    head = "| metric | type | labels | what it says |\n|---|---|---|---|\n"
    return head + "".join(
        f"| `{family.name}{_ENDING.get(family.type, '')}` | {family.type} "
        f"| {', '.join(f'`{label}`' for label in _labels(family))} | {family.documentation} |\n"
        for family in sorted(CrawlMetrics(sampler=sampler).collect(), key=lambda each: each.name)
    )


def _labels(family: Metric) -> list[str]:
    return sorted({label for sample in family.samples for label in sample.labels})


def main() -> None:
    """Write what has changed."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(f"renewed {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

"""Tables in README.md and docs/ that are made from the code. `python -m tests.documents` renews them."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

from extensions.config import PREFIX, Config

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_TABLE = re.compile(r"(<!-- settings: (?P<names>[^>]*?) -->\n).*?(<!-- end -->)", re.DOTALL)
_HEAD = "| setting | default | what it does |\n|---|---|---|\n"


def renewed(text: str) -> str:
    """*text* with its settings tables as the code has them."""
    return _TABLE.sub(lambda m: m[1] + settings_table(m["names"]) + m[3], text)


def settings_table(names: str) -> str:
    """The settings with these *names* (``all``, or without prefix and with commas) as Markdown."""
    fields = {field.name.upper(): field for field in dataclasses.fields(Config)}
    wanted = list(fields) if names == "all" else [name.strip() for name in names.split(",")]
    return _HEAD + "".join(
        f"| `{PREFIX}{name}` | `{fields[name].metadata['default']!r}` "
        f"| {' '.join(fields[name].metadata['doc'].split())} |\n"
        for name in wanted
    )


def main() -> None:
    """Write what has changed."""
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        if (new := renewed(text)) != text:
            path.write_text(new, encoding="utf-8")
            print(f"renewed {path.relative_to(ROOT)}")


if __name__ == "__main__":
    main()

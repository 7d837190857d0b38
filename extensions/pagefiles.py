"""The files of the status page: styles and scripts of its own, and the chart library of a package.

The rule it keeps: nothing is loaded from elsewhere, and of the chart library only what is known byte for byte.
"""

from __future__ import annotations

import importlib.metadata
import importlib.resources
from hashlib import sha256
from pathlib import Path

SCRIPTS = ("format.js", "charts.js", "domains.js", "control.js", "detail.js", "trend.js", "page.js")
CHART_FILES = {
    "uplot.js": (
        "youplot/vendor/uplot.iife.min.js",
        "2d27e8ad3d228164525ce213f9dc716f39b4e3aee0cc773fb3491c96cf4921a2",
    ),
    "uplot.css": (
        "youplot/vendor/uplot.min.css",
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
    ),
}
"""uPlot 1.6.31 as npm ships it, in the package `youplot` 1.0.0: served only if it is just that."""


def static(name: str) -> str:
    """A file of this package's `static` folder; the package may be a zip."""
    folder = importlib.resources.files(__package__ or "extensions") / "static"
    return (folder / name).read_text(encoding="utf-8")


def chart_library() -> dict[str, str]:
    """The chart library's files by name; empty if it is missing or not the known one."""
    found = {}
    try:
        package = importlib.metadata.distribution("youplot")
        for name, (path, digest) in CHART_FILES.items():
            content = Path(str(package.locate_file(path))).read_bytes()
            if sha256(content).hexdigest() != digest:
                return {}
            found[name] = content.decode()
    except (importlib.metadata.PackageNotFoundError, OSError):
        return {}
    return found


def page_html(*, charts: bool) -> str:
    """The page's HTML with its styles and scripts named."""
    styles = ["page.css", *(["uplot.css"] if charts else [])]
    scripts = [*(["uplot.js"] if charts else []), *SCRIPTS]
    head = "\n".join(f'<link rel="stylesheet" href="static/{name}">' for name in styles)
    tail = "\n".join(f'<script src="static/{name}"></script>' for name in scripts)
    return static("page.html").replace("<!-- head -->", head).replace("<!-- scripts -->", tail)

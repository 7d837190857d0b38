"""Which Sluice this is, and which version of the project's code runs it.

The rule it keeps: what is shown is read from what was loaded, never from what was meant to be deployed.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from functools import cache

VERSION = "0.1.0"

_EGG = re.compile(r"([^/\\]+)\.egg[/\\]")


def code_version(file: str | None = None) -> str | None:
    """The version under which Scrapyd keeps the project's code that runs here; None: it does not come from an egg.

    Args:
        file: Where the project's settings module was loaded from; by default it is looked up.
    """
    if file is None:
        module = sys.modules.get(os.environ.get("SCRAPY_SETTINGS_MODULE", ""))
        file = getattr(module, "__file__", None) or ""
    found = _EGG.search(file)
    return found[1] if found else None


@cache
def versions() -> str:
    """What runs here, for the foot of a page, the metrics and the log."""
    found = [f"Sluice {VERSION}", f"Scrapy {importlib.metadata.version('scrapy')}"]
    if (code := code_version()) is not None:
        found.insert(0, f"code {code}")
    return ", ".join([*found, f"Python {platform.python_version()}"])

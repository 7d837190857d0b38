"""A crawl that shows nothing starts without what only shows."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT, scrapy_environment

CODE = """
import sys
from scrapy.cmdline import _get_commands_dict
from scrapy.utils.project import get_project_settings
_get_commands_dict(get_project_settings(), True)
import extensions.addon
print(*sys.modules)
"""
HEAVY = {
    "rich", "aiohttp", "prometheus_client", "redis", "extensions.lab", "extensions.policy.lab",
    "extensions.display", "extensions.statuspage", "extensions.metrics", "extensions.reporthtml",
}  # fmt: skip


def test_what_is_not_asked_for_is_not_loaded() -> None:
    """No terminal, no page, no lab: neither their modules nor the packages that they need."""
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        cwd=ROOT, env=scrapy_environment(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = set(done.stdout.split())
    assert "extensions.overview" in loaded
    assert HEAVY & loaded == set()

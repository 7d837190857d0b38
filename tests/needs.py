"""What tests need of the machine: without it they are left out at a developer's desk, and fail in CI."""

from __future__ import annotations

import os

import pytest


def needs(package: str, *, found: object) -> pytest.MarkDecorator:
    """Leave a test out where *found* is not true and this is not CI, which installs *package* (Debian's name)."""
    missing = not found and not os.environ.get("CI")
    return pytest.mark.skipif(missing, reason=f"{package} is not installed")

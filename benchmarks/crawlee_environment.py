"""Crawlee's own virtual environment: a peer to measure is no dependency of the project."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENT = "crawlee[parsel]==1.11.*"


class NotInstalled(Exception):
    """The peer cannot be measured here; the text says why."""


def python() -> Path:
    """The Python that has Crawlee; made in the user's cache folder by the first call.

    Raises:
        NotInstalled: There is no network, or no such version.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "sluice-benchmarks" / REQUIREMENT
    found, ready = folder / "bin" / "python", folder / "ready"
    if ready.exists():
        return found
    try:
        venv.create(folder, clear=True, with_pip=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotInstalled(f"no virtual environment in {folder}: {error}") from error
    done = subprocess.run(
        [found, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REQUIREMENT],
        check=False,
        stdout=sys.stderr,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["pip failed"]
        raise NotInstalled(f"pip install '{REQUIREMENT}': {lines[-1]}")
    ready.touch()
    return found

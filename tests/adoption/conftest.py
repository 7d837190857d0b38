"""A virtual environment into which the wheel was installed, and a stock project in it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path

LINE = 'ADDONS = {"scrapy_sluice.Addon": 300}'
POLITE = ("CONCURRENT_REQUESTS_PER_DOMAIN = 1\n", "DOWNLOAD_DELAY = 1\n")


def run(*words: str | Path, cwd: Path, timeout_s: float = 120, **more: str):
    """Run a command without this project in reach, and wait for its end."""
    hidden = ("PYTHONPATH", "SCRAPY_SETTINGS_MODULE", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**environment, **more},
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, as `pip wheel .` builds it from a checkout."""
    source = tmp_path_factory.mktemp("checkout")
    for folder in ("extensions", "project", "spiders", "tests/sites"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / folder, source / folder, ignore=ignore)
    for file in ("setup.py", "pyproject.toml", "requirements.txt"):
        shutil.copy(ROOT / file, source)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index"]
    built = run(*pip, "--no-deps", "--no-build-isolation", "-w", "made", ".", cwd=source)
    assert built.returncode == 0, built.stderr
    assert not list(source.glob("*.egg-info")), "it would put its entry points into this checkout"
    (made,) = (source / "made").iterdir()
    return made


@pytest.fixture(scope="session")
def wheel_python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment's Python: Scrapy is shared with this one, Sluice is there by its wheel only."""
    folder = tmp_path_factory.mktemp("environment")
    made = run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    assert made.returncode == 0, made.stderr
    python = folder / "venv" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index"]
    done = run(*pip, "--no-deps", wheel, cwd=folder)
    assert done.returncode == 0, done.stderr
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (site / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@dataclass
class Project:
    """What `scrapy startproject` made."""

    folder: Path
    python: Path

    def scrapy(self, *words: str, timeout_s: float = 120, **more: str):
        """Run `scrapy` in the project, in the environment with the wheel."""
        return run(
            self.python, "-m", "scrapy", *words, cwd=self.folder, timeout_s=timeout_s, **more
        )

    def spider(self, text: str) -> None:
        """Write the project's spider."""
        (self.folder / "shop" / "spiders" / "pages.py").write_text(text)

    def adopt(self) -> None:
        """Put in the one line."""
        self.change("ADDONS = {}", LINE)

    def change(self, old: str, new: str) -> None:
        """Change the project's settings."""
        path = self.folder / "shop" / "settings.py"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))


@pytest.fixture
def project(wheel_python: Path, tmp_path: Path) -> Project:
    """A stock project, without the two lines that let it ask one page a second only."""
    made = run(wheel_python, "-m", "scrapy", "startproject", "shop", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    project = Project(tmp_path / "shop", wheel_python)
    for line in POLITE:
        project.change(line, "")
    return project

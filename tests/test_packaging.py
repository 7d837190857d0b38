"""The egg that Scrapyd runs holds all that a crawl reads, and works as it is: zipped."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT, scrapy_environment

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = ("extensions", "project", "spiders")
CHECK = (
    "import sys; sys.path = [p for p in sys.path if p]\n"
    "from scrapy.cmdline import execute; execute(['scrapy', 'check'])"
)


@pytest.fixture(scope="module")
def egg(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    for package in PACKAGES:
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, source / package, ignore=ignore)
    (source / "tests").mkdir()
    (source / "tests" / "__init__.py").touch()
    shutil.copy(ROOT / "setup.py", source)
    built = subprocess.run(
        [sys.executable, "setup.py", "-q", "bdist_egg", "-d", "dist"],
        cwd=source, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stderr
    (made,) = (source / "dist").glob("*.egg")
    return made


def test_every_file_of_the_packages_is_in_it_and_no_test(egg):
    held = set(zipfile.ZipFile(egg).namelist())
    meant = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert meant - held == set()
    assert not [name for name in held if name.startswith(("tests", "benchmarks"))]


def test_from_the_zip_the_contracts_are_checked(egg, tmp_path):
    environment = scrapy_environment(PYTHONPATH=str(egg))
    done = subprocess.run(
        [sys.executable, "-c", CHECK],
        cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "OK" in done.stderr
    assert list(tmp_path.iterdir()) == []

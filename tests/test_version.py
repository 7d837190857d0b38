"""Which version runs is read from where the code was loaded."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

import pytest

import extensions
from extensions.version import VERSION, code_version, versions
from tests.conftest import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("/var/lib/scrapyd/eggs/sluice/1796079113.egg/project/settings.pyc", "1796079113"),
        ("eggs/sluice/1_10.egg/project/settings.py", "1_10"),
        (r"C:\\eggs\\sluice\\7.egg\\project\\settings.py", "7"),
        ("/srv/crawl/project/settings.py", None),
        ("/srv/sluice.egg-info/settings.py", None),
        ("", None),
    ],
)
def test_the_version_of_the_code_is_that_of_its_egg(file, version):
    assert code_version(file) == version


def test_in_a_checkout_there_is_no_version_of_the_code():
    assert code_version(str(ROOT / "project" / "settings.py")) is None
    assert versions().startswith(f"Sluice {VERSION}, Scrapy ")
    assert extensions.__version__ == VERSION


def test_an_egg_is_a_zip_in_which_files_have_such_names(tmp_path: Path):
    """What `code_version` takes for granted of Python."""
    egg = tmp_path / "12.egg"
    with zipfile.ZipFile(egg, "w") as out:
        out.writestr("settings_of_12.py", "")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(egg))
        import settings_of_12  # noqa: PLC0415
    assert code_version(settings_of_12.__file__) == "12"

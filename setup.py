"""Two things are built from here, by what is asked for.

`scrapyd-deploy` (or `setup.py bdist_egg`) builds the egg that Scrapyd runs: three packages with their data files, no tests.
All else (`pip wheel .`, `pip install .`) builds the wheel `scrapy-sluice`: the folder extensions/ alone, under the import
name `scrapy_sluice`, for any Scrapy project.
"""

import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
VERSION = re.search(
    r'^VERSION = "(.+)"', (HERE / "extensions/version.py").read_text("utf-8"), re.MULTILINE
)[1]
DATA = ["*.lua", "*.css", "*.js", "*.html", "*.sql", "*.tmpl", "py.typed"]

# What each part of Sluice needs beside Scrapy; the ranges stand in requirements.txt.
CORE = ("scrapy", "twisted", "itemadapter", "parsel", "http-sf", "rich")
EXTRAS = {
    "redis": ("redis",),
    "databases": ("sqlalchemy", "psycopg"),
    "fast": ("aiohttp", "uvloop"),
    "page": ("prometheus-client",),
}
NEW_COMMANDS = ("deadletters", "fixture", "job")


def requirements() -> dict[str, str]:
    """Lines of requirements.txt by the name of the package."""
    lines = (HERE / "requirements.txt").read_text("utf-8").splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    return {re.match(r"[\w.-]+", line)[0].lower(): line for line in wanted}


def egg(**options: Any) -> None:
    """Build what Scrapyd runs."""
    setup(
        name="sluice",
        version=VERSION,
        packages=find_packages(include=["project*", "spiders*", "extensions*"]),
        package_data={"": DATA, "extensions": ["static/*"], "spiders": ["fixtures/*"]},
        extras_require={"charts": ["youplot==1.0.0"]},
        entry_points={"scrapy": ["settings = project.settings"]},
        **options,
    )


def wheel(**options: Any) -> None:
    """Build what other projects install."""
    needs = requirements()
    extras = {name: [needs[package] for package in names] for name, names in EXTRAS.items()}
    extras["all"] = sorted({line for lines in extras.values() for line in lines})
    commands = [f"{name} = scrapy_sluice.commands.{name}:Command" for name in NEW_COMMANDS]
    setup(
        name="scrapy-sluice",
        version=VERSION,
        description="Scrapy crawls that find each site's pace, lose nothing and go on after kill -9",
        python_requires=">=3.11,<3.14",
        install_requires=[needs[package] for package in CORE],
        extras_require=extras,
        packages=["scrapy_sluice", *(f"scrapy_sluice.{p}" for p in find_packages("extensions"))],
        package_dir={"scrapy_sluice": "extensions"},
        package_data={"": DATA, "scrapy_sluice": ["static/*"]},
        entry_points={"scrapy.commands": commands},
        **options,
    )


with tempfile.TemporaryDirectory() as scratch:
    # What a build leaves behind would put files that are gone into the next one.
    options = {"build": {"build_base": scratch}}
    if {"bdist_egg", "clean"} & set(sys.argv):  # scrapyd-deploy cleans first
        egg(options=options)
    else:
        # Its entry points lead nowhere from here: in this folder they would break `scrapy`.
        wheel(options={**options, "egg_info": {"egg_base": scratch}})

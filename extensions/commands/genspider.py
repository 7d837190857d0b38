"""`scrapy genspider`: Scrapy's own, with the template `sluice` beside its templates."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from scrapy.commands.genspider import Command as _GenspiderCommand
from scrapy.commands.genspider import sanitize_module_name, verify_url_scheme
from scrapy.spiderloader import get_spider_loader

from .. import templates
from ..contracts import FOLDER

if TYPE_CHECKING:
    import argparse

TEMPLATE = "sluice"


class Command(_GenspiderCommand):
    """Writes a spider, and with `-t sluice` the page that its contract is checked against."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Write, list or show."""
        if opts.list:
            super().run(args, opts)
            print(f"  {TEMPLATE}")
        elif opts.dump == TEMPLATE:
            print(_template("py").template)
        elif opts.template == TEMPLATE and len(args) == 2:  # noqa: PLR2004 - a name and a domain
            self.exitcode = self._generate(*args, force=opts.force)
        else:
            super().run(args, opts)

    def _generate(self, name: str, url: str, *, force: bool) -> int:
        assert self.settings is not None
        url, module = verify_url_scheme(url), sanitize_module_name(name)
        if fault := _name_fault(name, module, url):
            sys.stderr.write(f"scrapy genspider: {fault}\n")
            return 2
        package = import_module(self.settings["NEWSPIDER_MODULE"])
        folder = Path(package.__file__ or ".").parent
        spider, page = folder / f"{module}.py", folder / FOLDER / f"{module}.html"
        taken = name in get_spider_loader(self.settings).list() or spider.exists() or page.exists()
        if taken and not force:
            sys.stderr.write(f"scrapy genspider: spider {name!r} exists (--force replaces it)\n")
            return 1
        words = {
            "name": name,
            "module": module,
            "url": url,
            "host": urlsplit(url).netloc.rpartition("@")[2].lower(),
            "classname": "".join(part.capitalize() for part in module.split("_")) + "Spider",
        }
        page.parent.mkdir(exist_ok=True)
        for path, kind in ((spider, "py"), (page, "html")):
            path.write_text(_template(kind).substitute(words), encoding="utf-8")
            print(f"wrote {path}")
        print(f"check it with: scrapy check {name}")
        return 0


def _template(kind: str) -> Template:
    text = files(templates).joinpath(f"{TEMPLATE}.{kind}.tmpl").read_text(encoding="utf-8")
    return Template(text)


def _name_fault(name: str, module: str, url: str) -> str | None:
    if not re.fullmatch(r"[A-Za-z0-9_.-]+", name) or not module.isidentifier():
        return f"{name!r} cannot be a spider's name; use letters, digits, - and _"
    if not re.fullmatch(r"https?://[^\s\"\\<>]+", url) or not urlsplit(url).hostname:
        return f"{url!r} is no web address"
    return None

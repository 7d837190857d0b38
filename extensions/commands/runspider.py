"""`scrapy runspider`: Scrapy's own, with the arguments checked and the exit code of `crawl`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from scrapy.commands.runspider import Command as _RunSpiderCommand
from scrapy.exceptions import UsageError
from scrapy.utils.spider import iter_spider_classes

from ..arguments import BadArgument
from ..exits import TellsTheEnd

if TYPE_CHECKING:
    import argparse

    from scrapy import Spider


class Command(TellsTheEnd, _RunSpiderCommand):
    """Run a spider from a file; the exit code says whether anything is missing."""

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Run the last spider of the file named in *args*."""
        if len(args) != 1:
            raise UsageError("give one file: scrapy runspider FILE.py")
        try:
            spidercls = _spider_in(Path(args[0]))
        except BadArgument as error:
            self.refuse(error)
        else:
            self.crawl(spidercls, opts)


def _spider_in(file: Path) -> type[Spider]:
    if not file.exists():
        raise BadArgument(f"File not found: {file}")
    if file.suffix not in {".py", ".pyw"}:
        raise BadArgument(f"Unable to load {str(file)!r}: not a Python source file")
    sys.path.insert(0, str(file.resolve().parent))
    try:
        module = import_module(file.stem)
    except ImportError as error:
        raise BadArgument(f"Unable to load {str(file)!r}: {error}") from error
    finally:
        sys.path.pop(0)
    spiders = list(iter_spider_classes(module))
    if not spiders:
        raise BadArgument(f"No spider found in file: {file}")
    return spiders[-1]

"""``scrapy sluice-lab``: named after its module, as Scrapy wants it.

The lab itself is loaded when it is asked for: Scrapy imports every command at each start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.commands import ScrapyCommand

if TYPE_CHECKING:
    import argparse


class Command(ScrapyCommand):
    """The command, as Scrapy finds it."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        """One line of usage."""
        return "[options]"

    def short_desc(self) -> str:
        """What `scrapy -h` says."""
        return "Try the control law on models of servers, in virtual time"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The lab's own options."""
        super().add_options(parser)
        group = parser.add_argument_group(title="Lab")
        group.add_argument(
            "--model",
            default="",
            help="only servers whose name contains this; pool: only pools of proxies",
        )
        group.add_argument("--seed", type=int, default=1, help="seed of all chance (default 1)")
        group.add_argument(
            "--scale", type=float, default=1.0, help="factor on each model's limit (default 1)"
        )
        group.add_argument("--plot", metavar="FILE.png", help="draw pace and truth over time")
        group.add_argument(
            "--sensitivity", action="store_true", help="halve and double every constant"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Print the table; exit code 1 only for a wrong wish, never for a missed bar."""
        from ..lab import try_law  # noqa: PLC0415 - see above

        self.exitcode = try_law(args, opts)

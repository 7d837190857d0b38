"""Gives the lab's command its name: Scrapy names a command after its module."""

from ..lab import LabCommand


class Command(LabCommand):
    """The command, as Scrapy finds it."""

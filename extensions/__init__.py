"""Sluice: the parts that keep a Scrapy crawl standing. ``Addon`` switches them all on."""

from .addon import Addon
from .version import VERSION

__all__ = ["Addon", "__version__"]

__version__ = VERSION

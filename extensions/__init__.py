"""Sluice: the parts that keep a Scrapy crawl standing. ``Addon`` switches them all on."""

from .addon import Addon

__all__ = ["Addon", "__version__"]

__version__ = "0.1.0"

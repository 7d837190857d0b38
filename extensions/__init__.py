"""Sluice: the parts that keep a Scrapy crawl standing. ``Addon`` switches them all on."""

from .addon import Addon

__all__ = ["Addon"]

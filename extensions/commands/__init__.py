"""Scrapy commands: Sluice's own, and stock ones that it replaces."""

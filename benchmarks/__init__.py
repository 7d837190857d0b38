"""Sluice against stock Scrapy: ``python -m benchmarks``. Each figure is a ratio of the same run."""

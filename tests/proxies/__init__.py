"""Crawls through trial proxies."""

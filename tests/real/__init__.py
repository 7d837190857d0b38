"""Crawls of sites that nobody here wrote, behind servers that nobody here wrote."""

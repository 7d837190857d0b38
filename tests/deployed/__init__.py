"""A real Scrapyd on loopback, and what was deployed to it."""

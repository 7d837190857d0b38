"""Crawls that are killed, at random moments and at named points, and go on where they stood."""

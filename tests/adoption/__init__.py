"""Sluice in projects that are not this one."""

"""Decisions without side effects: no clock, no chance, no I/O; values in, values out."""

"""The project: its settings, its items, their validation."""

"""The spiders: extraction only."""

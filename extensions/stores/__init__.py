"""I/O behind protocols; knows neither Scrapy nor Twisted."""

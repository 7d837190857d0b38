"""An example of Spidermon beside Sluice: it reads what Sluice leaves in the stats.

In settings.py:

    EXTENSIONS = {"spidermon.contrib.scrapy.extensions.Spidermon": 500}
    SPIDERMON_ENABLED = True
    SPIDERMON_ENGINE_STOP_MONITORS = ("monitors.CrawlSuite",)

At the engine's stop, not at the spider's close: by then every stat is final.
"""

from spidermon import Monitor, MonitorSuite, monitors


@monitors.name("The crawl")
class CrawlMonitor(Monitor):
    """Complete, accounted for, and not held back by our own side."""

    @monitors.name("is complete")
    def test_complete(self) -> None:
        """Nothing lost, nothing left, every result written."""
        self.assertTrue(self.data.stats.get("sluice/complete"))

    @monitors.name("adds up")
    def test_account(self) -> None:
        """Every request that was asked for is somewhere."""
        self.assertEqual(self.data.stats.get("sluice/account_off"), 0)

    @monitors.name("was not waiting for its results to be written")
    def test_writer(self) -> None:
        """The writer held the crawl back for less than a tenth of the time."""
        stats = self.data.stats
        behind_s = stats.get("sluice/bottleneck_seconds/writer_behind", 0)
        self.assertLess(behind_s, 0.1 * max(stats.get("elapsed_time_seconds", 0), 1))


class CrawlSuite(MonitorSuite):
    """To be run when the engine has stopped."""

    monitors = [CrawlMonitor]

"""Templates that `scrapy genspider` knows beside Scrapy's own. `$name` stands for a variable."""

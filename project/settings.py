"""Settings of the project, literals only; docs/settings.md lists those that Sluice adds."""

BOT_NAME = "sluice"
SPIDER_MODULES = ["spiders"]
NEWSPIDER_MODULE = "spiders"

ADDONS = {"extensions.Addon": 300}

# An address at which a site's owner can reach you belongs here: they will rather write than block.
USER_AGENT = (
    "Sluice/0.1 (+https://github.com/scrapy/scrapy; polite crawler; set USER_AGENT to your contact)"
)
ROBOTSTXT_OBEY = True
LOG_LEVEL = "INFO"

COMMANDS_MODULE = "extensions.commands"
ITEM_PIPELINES = {"project.pipelines.ValidatePipeline": 100}

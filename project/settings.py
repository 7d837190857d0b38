"""Settings of the project, literals only; docs/settings.md lists those that Sluice adds."""

BOT_NAME = "sluice"
SPIDER_MODULES = ["spiders"]
NEWSPIDER_MODULE = "spiders"
COMMANDS_MODULE = "extensions.commands"

ADDONS = {"extensions.Addon": 300}

# An address at which a site's owner can reach you belongs here: they will rather write than block.
USER_AGENT = "Sluice/0.1 (polite crawler; set USER_AGENT to your contact)"
ROBOTSTXT_OBEY = True
LOG_LEVEL = "INFO"

ITEM_PIPELINES = {"project.pipelines.ValidatePipeline": 100}

# Requests in flight, all domains together, and the ceiling of one domain. Sluice finds the right number below it.
CONCURRENT_REQUESTS = 32
CONCURRENT_REQUESTS_PER_DOMAIN = 16

ASYNCIO_EVENT_LOOP = "uvloop.Loop"

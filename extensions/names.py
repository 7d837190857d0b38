"""Every name that users meet, once: meta keys, stats, finish reasons. docs/ lists them; a test compares."""

from __future__ import annotations

# Meta keys a spider may set.
DELAY_S = "sluice_delay_s"  # keep this request for so many seconds before it goes

SESSION = "sluice_session"  # requests of one session keep to one proxy and its cookies

# Meta keys that Sluice sets itself and reads back after a restart.
SLOT = "sluice_slot"  # the download slot that the scheduler chose (a user's own download_slot has none)
REFUSALS = "sluice_refusals"  # refused answers to this request so far; they spend no attempt
FILTERABLE = "sluice_filterable"  # set on a retry: what it redirects to passes the duplicate filter
REPEATS = "sluice_repeats"  # times a callback asked for its own URL again, in a row
FIRST_AT = "sluice_first_at"  # wall-clock seconds of the first failure
DEAD_LETTER = "sluice_dead_letter"  # id of the dead letter that this request replays

PROXY = "sluice_proxy"  # what the proxy is called that the pool has chosen
WITNESS = "sluice_witness"  # asks only whether this machine's network works
PROXY_TRIES = "sluice_proxy_tries"  # how often the request came to nothing through proxies

ORIGIN = "sluice_origin"  # set on a retry in a shared crawl: id of the request that it began as; it names the results
ENTRY = "sluice_entry"  # it came from a queue, where each entry is meant, however often it comes

# Finish reasons beside Scrapy's own.
REASON_STORE = "store_failed"
REASON_SINK = "sink_gone"
REASON_SCHEDULER = "scheduler_failed"
REASON_REDIS = "redis_refused"
REASON_JOB_LOST = "job_lost"
REASON_PROXIES = "no_proxies"
REASON_STOPPED = "stopped"  # on the status page

# Facts that a job's store keeps beside its rows.
FACT_ACCOUNT = "account"
FACT_LEARNED = "learned"
FACT_WITNESSES = "witnesses"

# Stats. `%s` stands for a reason, an outcome or a cause out of a bounded list.
STAT_CODE_VERSION = "sluice/code_version"
STAT_STATUS_URL = "sluice/status_url"
STAT_COMPLETE = "sluice/complete"
STAT_EXIT_CODE = "sluice/exit_code"
STAT_ACCOUNT_OFF = "sluice/account_off"
STAT_BOTTLENECK = "sluice/bottleneck_seconds/%s"
STAT_PARSED = "sluice/parsed"
STAT_DUPLICATES = "dupefilter/filtered"
STAT_SKIPPED = "sluice/skipped/%s"
STAT_DEAD = "sluice/dead_letters/%s"
STAT_DEAD_COUNT = "sluice/dead_letters"
STAT_OUTCOME = "sluice/outcome/%s"
STAT_SPILLED = "sluice/spilled"
STAT_DELAYED = "sluice/delayed"
STAT_REPLACED = "sluice/replaced"
STAT_MEMORY_ONLY = "sluice/memory_only"
STAT_UNREADABLE = "sluice/unreadable"
STAT_GATE_CLOSED = "sluice/gate_closed"
STAT_PENDING_MAX = "sluice/pending_max"
STAT_PENDING_LEFT = "sluice/pending_left"
STAT_HOLDS = "sluice/holds"
STAT_OUTAGES = "sluice/outages"
STAT_OUTAGE_RETRIES = "sluice/outage_retries"
STAT_RESULTS_LEFT = "sluice/results_left"
STAT_BANS = "sluice/bans"
STAT_BAN_ERRORS = "sluice/ban_rule_errors"
STAT_RESUMED = "sluice/resumed"
STAT_POSTPONED = "sluice/retries_postponed"
STAT_PROXIES = "sluice/proxies"
STAT_PROXIES_HEALTHY = "sluice/proxies/healthy"
STAT_PROXY_FAILURES = "sluice/proxies/failures"
STAT_PROXY_RESTS = "sluice/proxies/rests"
STAT_PROXY_BANS = "sluice/proxies/bans"
STAT_REDIS_AWAY = "sluice/shared/away"
STAT_FENCED = "sluice/shared/taken_for_dead"
STAT_LATE_ENDS = "sluice/shared/late_ends"
STAT_WORKERS = "sluice/shared/workers"

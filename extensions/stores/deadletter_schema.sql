-- What was given up, one row a thing. Open it with sqlite3 whenever you like.
CREATE TABLE runs (
    id         INTEGER PRIMARY KEY,
    job        TEXT NOT NULL,             -- the same for a job that is resumed
    spider     TEXT NOT NULL,
    arguments  TEXT NOT NULL,             -- JSON object: what the spider was made with
    folder     TEXT,                      -- of a job that can be resumed
    holder     TEXT NOT NULL,             -- JSON: the process
    started_at REAL NOT NULL,
    seen_at    REAL NOT NULL,             -- it was alive then
    ended_at   REAL
);
CREATE INDEX runs_job ON runs (job);
CREATE TABLE letters (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    spider     TEXT NOT NULL,
    kind       TEXT NOT NULL,             -- request, item, seed
    key        TEXT NOT NULL,             -- of the thing: the same over all its failures
    url        TEXT NOT NULL,
    domain     TEXT NOT NULL,
    reason     TEXT NOT NULL,
    detail     TEXT NOT NULL,
    attempts   INTEGER NOT NULL,          -- times sent, over all runs and replays
    status     INTEGER,
    exception  TEXT,
    first_at   REAL NOT NULL,             -- seconds since 1970
    last_at    REAL NOT NULL,
    replays    INTEGER NOT NULL DEFAULT 0,
    state      TEXT NOT NULL DEFAULT 'dead',  -- dead, requested, replaying
    job        TEXT,                      -- that replays it
    claim      INTEGER,                   -- number of the claim that took it
    arguments  TEXT NOT NULL,             -- JSON object: of the spider that gave it up
    payload    BLOB NOT NULL,
    UNIQUE (spider, kind, key)
);
CREATE INDEX letters_state ON letters (state, spider) WHERE state <> 'dead';
CREATE INDEX letters_last ON letters (last_at);
CREATE TABLE uids (                       -- what has been put already: a resend changes nothing
    uid    TEXT PRIMARY KEY,
    put_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX uids_put ON uids (put_at);
CREATE TABLE claims (number INTEGER PRIMARY KEY AUTOINCREMENT);

-- One job: what it has seen, what it still has to fetch, and what has not yet left it.
-- Open it with `sqlite3 job.sqlite`; state: 0 pending, 1 in a process's window, 2 leased, 3 delayed, 4 held.

CREATE TABLE request (
    id       INTEGER PRIMARY KEY,
    state    INTEGER NOT NULL,
    domain   TEXT    NOT NULL,
    priority INTEGER NOT NULL,
    rank     INTEGER NOT NULL,
    due_at   REAL,                 -- wall-clock seconds; delayed rows only
    parent   INTEGER,              -- the request whose callback made it; held rows only
    crashes  INTEGER NOT NULL,     -- how many processes died while it was in flight
    payload  BLOB    NOT NULL      -- the request as JSON
);
-- Partial indexes: each holds only the rows that its question is about, so a drained job has small ones.
CREATE INDEX request_pending ON request (domain, priority DESC, rank) WHERE state = 0;
CREATE INDEX request_active  ON request (id)     WHERE state IN (1, 2);
CREATE INDEX request_delayed ON request (due_at) WHERE state = 3;
CREATE INDEX request_held    ON request (parent) WHERE state = 4;

-- Fingerprints come in random order: each put straight into `seen` would dirty a page of its own. They are appended
-- to `seen_recent` and merged in sorted order at a checkpoint. A fingerprint in either, or both, was seen.
CREATE TABLE seen (fingerprint BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE seen_recent (id INTEGER PRIMARY KEY, fingerprint BLOB NOT NULL);

CREATE TABLE outbox (          -- results that not every sink has yet
    id         INTEGER PRIMARY KEY,
    request_id INTEGER,        -- the request that it came from; NULL: from start()
    payload    TEXT NOT NULL
);

CREATE TABLE dead (            -- dead letters on their way to the dead-letter store
    id             INTEGER PRIMARY KEY,
    uid            TEXT NOT NULL UNIQUE,
    kind           TEXT NOT NULL,
    key            TEXT NOT NULL,
    spider         TEXT NOT NULL,
    url            TEXT NOT NULL,
    domain         TEXT NOT NULL,
    reason         TEXT NOT NULL,
    detail         TEXT NOT NULL,
    attempts       INTEGER NOT NULL,
    status         INTEGER,
    exception      TEXT,
    first_at       REAL NOT NULL,
    last_at        REAL NOT NULL,
    payload        BLOB NOT NULL,
    dead_letter_id INTEGER
);

CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

CREATE TABLE tally (           -- one row: counters kept with the rows that they count
    one       INTEGER PRIMARY KEY CHECK (one = 1),
    pending   INTEGER NOT NULL DEFAULT 0,
    window    INTEGER NOT NULL DEFAULT 0,
    leased    INTEGER NOT NULL DEFAULT 0,
    delayed   INTEGER NOT NULL DEFAULT 0,
    held      INTEGER NOT NULL DEFAULT 0,
    seen      INTEGER NOT NULL DEFAULT 0,
    outbox    INTEGER NOT NULL DEFAULT 0,
    dead      INTEGER NOT NULL DEFAULT 0,
    done      INTEGER NOT NULL DEFAULT 0,  -- acknowledged in the job's whole life
    last_id   INTEGER NOT NULL DEFAULT 0,  -- ids are never used again, even when their rows are gone
    last_item INTEGER NOT NULL DEFAULT 0,
    last_dead INTEGER NOT NULL DEFAULT 0,
    clock_at  REAL    NOT NULL DEFAULT 0   -- wall-clock seconds of the last commit
);
INSERT INTO tally (one) VALUES (1);

-- Sessions, their execs, the audit and a few named values.
-- Only added to by further files: an applied file is known by its checksum and is never edited.
-- Times are milliseconds since the epoch, 0 means none.

CREATE TABLE value (
	key   TEXT NOT NULL PRIMARY KEY,
	value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE session (
	id              TEXT NOT NULL PRIMARY KEY,
	state           TEXT NOT NULL CHECK (state IN ('creating', 'ready', 'paused', 'stopping', 'gone', 'failed')),
	name            TEXT,
	labels          TEXT NOT NULL CHECK (json_valid(labels) AND json_type(labels) = 'object'),
	env             TEXT NOT NULL CHECK (json_valid(env) AND json_type(env) = 'object'),
	image           TEXT,
	image_id        TEXT,
	image_env       TEXT,
	memory_mb       INTEGER NOT NULL CHECK (memory_mb >= 0),
	cpu_milli       INTEGER NOT NULL CHECK (cpu_milli >= 0),
	pids            INTEGER NOT NULL CHECK (pids >= 0),
	ttl_s           INTEGER NOT NULL CHECK (ttl_s >= 0),
	idle_s          INTEGER NOT NULL CHECK (idle_s >= 0),
	network         TEXT,
	isolation       TEXT,
	workspace_kind  TEXT,
	workspace_name  TEXT,
	workspace_mb    INTEGER NOT NULL CHECK (workspace_mb >= 0),
	reason          TEXT,
	detail          TEXT,
	token_hash      TEXT UNIQUE,
	sandbox         TEXT UNIQUE,
	container       TEXT,
	link_generation INTEGER NOT NULL CHECK (link_generation >= 0),
	created_ms      INTEGER NOT NULL CHECK (created_ms >= 0),
	ready_ms        INTEGER NOT NULL CHECK (ready_ms >= 0),
	expires_ms      INTEGER NOT NULL CHECK (expires_ms >= 0),
	idle_ms         INTEGER NOT NULL CHECK (idle_ms >= 0),
	ended_ms        INTEGER NOT NULL CHECK (ended_ms >= 0)
) STRICT;

-- Pages of a list: the usual one without the ended, one state, one name.
CREATE INDEX session_live ON session (created_ms, id) WHERE state NOT IN ('gone', 'failed');
CREATE INDEX session_state ON session (state, created_ms, id);
CREATE INDEX session_name ON session (name, created_ms, id) WHERE name IS NOT NULL;
CREATE INDEX session_ended ON session (ended_ms) WHERE state IN ('gone', 'failed');

-- The labels once more, in the order of a list. Kept by the triggers alone.
CREATE TABLE session_label (
	key     TEXT NOT NULL,
	value   TEXT NOT NULL,
	ended   INTEGER NOT NULL,
	at_ms   INTEGER NOT NULL,
	session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
	PRIMARY KEY (key, value, ended, at_ms, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_label_session ON session_label (session);

CREATE TRIGGER session_label_insert AFTER INSERT ON session
BEGIN
	INSERT INTO session_label (key, value, ended, at_ms, session)
	SELECT key, value, new.state IN ('gone', 'failed'), new.created_ms, new.id FROM json_each(new.labels);
END;

CREATE TRIGGER session_label_update AFTER UPDATE OF labels, state, created_ms ON session
WHEN new.labels <> old.labels OR new.created_ms <> old.created_ms
	OR (new.state IN ('gone', 'failed')) <> (old.state IN ('gone', 'failed'))
BEGIN
	DELETE FROM session_label WHERE session = new.id;
	INSERT INTO session_label (key, value, ended, at_ms, session)
	SELECT key, value, new.state IN ('gone', 'failed'), new.created_ms, new.id FROM json_each(new.labels);
END;

CREATE TABLE exec (
	id           TEXT NOT NULL PRIMARY KEY,
	session      TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
	command      TEXT,
	key          TEXT,
	request_hash TEXT,
	options      TEXT,
	reply        TEXT,
	reason       TEXT,
	started_ms   INTEGER NOT NULL CHECK (started_ms >= 0),
	ended_ms     INTEGER NOT NULL CHECK (ended_ms >= 0)
) STRICT;
CREATE INDEX exec_session ON exec (session, started_ms);
CREATE UNIQUE INDEX exec_key ON exec (session, key) WHERE key IS NOT NULL;
CREATE INDEX exec_running ON exec (started_ms) WHERE ended_ms = 0;
CREATE INDEX exec_ended ON exec (ended_ms) WHERE ended_ms > 0;

-- Names no other row by a foreign key: it outlives what it tells of.
CREATE TABLE audit (
	id      INTEGER PRIMARY KEY,
	at_ms   INTEGER NOT NULL,
	actor   TEXT NOT NULL,
	address TEXT,
	action  TEXT NOT NULL,
	session TEXT,
	exec    TEXT,
	subject TEXT,
	outcome TEXT,
	detail  TEXT
) STRICT;

-- Background processes: rows of exec with a name, the pid of the leader (0: not known) and `kept` for as long as the
-- agent keeps the record and the output. The index serves the start of berthd.

ALTER TABLE exec ADD COLUMN kind INTEGER NOT NULL DEFAULT 0 CHECK (kind IN (0, 1)); -- enum exec_kind
ALTER TABLE exec ADD COLUMN name TEXT;
ALTER TABLE exec ADD COLUMN pid  INTEGER NOT NULL DEFAULT 0 CHECK (pid >= 0);
ALTER TABLE exec ADD COLUMN kept INTEGER NOT NULL DEFAULT 0 CHECK (kept IN (0, 1));

CREATE INDEX exec_kept ON exec (started_ms) WHERE kept = 1;

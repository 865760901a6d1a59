-- Schema 1. Names and keys are BLOBs, which SQLite orders by their bytes, as Go orders strings.

-- The revision that the last batch made, in one row.
CREATE TABLE counter (revision INTEGER NOT NULL);
INSERT INTO counter VALUES (0);

-- Remembered counts the batches with an ID that the thread ever remembered.
CREATE TABLE thread (
	id         INTEGER PRIMARY KEY,
	name       BLOB    NOT NULL UNIQUE,
	revision   INTEGER NOT NULL,
	remembered INTEGER NOT NULL
);

-- The latest batches of a thread that had an ID. A new one replaces the oldest one: slot is thread.remembered modulo store.Remembered.
CREATE TABLE applied (
	thread   INTEGER NOT NULL,
	slot     INTEGER NOT NULL,
	id       BLOB    NOT NULL,
	revision INTEGER NOT NULL,
	PRIMARY KEY (thread, slot)
) WITHOUT ROWID;

CREATE TABLE cell (
	thread INTEGER NOT NULL,
	kind   BLOB    NOT NULL,
	key    BLOB    NOT NULL,
	value  BLOB    NOT NULL,
	PRIMARY KEY (thread, kind, key)
) WITHOUT ROWID;

-- The places of cells in indexes. Here a thread is its name, because that is the order of store.Scan. Sole is 1 if no other cell may have
-- the place with sole = 1.
CREATE TABLE place (
	name   BLOB    NOT NULL,
	grp    BLOB    NOT NULL,
	key    BLOB    NOT NULL,
	thread BLOB    NOT NULL,
	kind   BLOB    NOT NULL,
	cell   BLOB    NOT NULL,
	sole   INTEGER NOT NULL,
	PRIMARY KEY (name, grp, key, thread, kind, cell)
) WITHOUT ROWID;
CREATE INDEX place_cell ON place (thread, kind, cell, sole);
CREATE UNIQUE INDEX place_sole ON place (name, grp, key) WHERE sole = 1;

-- Last is the number of the last entry that was ever appended.
CREATE TABLE log (
	thread INTEGER NOT NULL,
	log    BLOB    NOT NULL,
	last   INTEGER NOT NULL,
	PRIMARY KEY (thread, log)
) WITHOUT ROWID;

CREATE TABLE entry (
	thread INTEGER NOT NULL,
	log    BLOB    NOT NULL,
	seq    INTEGER NOT NULL,
	data   BLOB    NOT NULL,
	PRIMARY KEY (thread, log, seq)
) WITHOUT ROWID;

-- Topics of batches, for other processes. Origin is the Store that wrote it. Only the latest ones are kept.
CREATE TABLE notice (
	id     INTEGER PRIMARY KEY,
	topic  BLOB    NOT NULL,
	origin INTEGER NOT NULL
);

-- store.EventBatch. Batches of a stream do not overlap. At is in microseconds since 1970.
CREATE TABLE event (
	stream BLOB    NOT NULL,
	last   INTEGER NOT NULL,
	first  INTEGER NOT NULL,
	fence  INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	data   BLOB    NOT NULL,
	PRIMARY KEY (stream, last)
) WITHOUT ROWID;
CREATE INDEX event_at ON event (at);

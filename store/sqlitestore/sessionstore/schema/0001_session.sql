-- Threads, version 1.

-- Threads have numbers, so that long ids are there once. An id is any bytes.
CREATE TABLE session_thread (
	number INTEGER PRIMARY KEY,
	thread TEXT NOT NULL UNIQUE
);

-- A log only grows: a line is a message that comes next, or one that stands in the place of the
-- message with its id. Data is the line in JSON.
CREATE TABLE session_line (
	thread BIGINT NOT NULL,
	n      BIGINT NOT NULL,
	id     TEXT NOT NULL,
	data   BLOB NOT NULL,
	PRIMARY KEY (thread, n)
);
CREATE INDEX session_line_id ON session_line (thread, id);

CREATE TABLE session_state (
	thread BIGINT NOT NULL PRIMARY KEY,
	rev    BIGINT NOT NULL,
	data   BLOB NOT NULL
);

CREATE TABLE session_event (
	thread BIGINT NOT NULL,
	n      BIGINT NOT NULL,
	data   BLOB NOT NULL,
	PRIMARY KEY (thread, n)
);

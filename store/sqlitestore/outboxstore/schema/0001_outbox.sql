-- The outbox of notifications, version 1. Times are milliseconds since 1970.

-- Numbers are never used again: AUTOINCREMENT remembers the greatest.
CREATE TABLE outbox_entry (
	seq    INTEGER PRIMARY KEY AUTOINCREMENT,
	thread TEXT NOT NULL,
	data   BLOB,
	at     BIGINT
);
CREATE INDEX outbox_entry_thread ON outbox_entry (thread, seq);

-- Keys stay when their entries are removed, until their tasks are forgotten.
CREATE TABLE outbox_key (
	thread TEXT NOT NULL,
	key    TEXT NOT NULL,
	PRIMARY KEY (thread, key)
) WITHOUT ROWID;

CREATE TABLE outbox_record (
	thread TEXT NOT NULL,
	task   TEXT NOT NULL,
	record BLOB,
	PRIMARY KEY (thread, task)
) WITHOUT ROWID;

-- The mailbox, version 3: the latest events of dispatches, in batches.
CREATE TABLE event (
	dispatch TEXT NOT NULL,
	first    BIGINT NOT NULL,
	last     BIGINT NOT NULL,
	fence    BIGINT NOT NULL,
	at       BIGINT NOT NULL,
	data     BLOB NOT NULL,
	PRIMARY KEY (dispatch, first)
) WITHOUT ROWID;
CREATE INDEX event_time ON event (at);

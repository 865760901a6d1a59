-- Decision records, version 1.

-- Written has the order in which records were written to last; bytes is what their lines come to.
CREATE TABLE record_run (
	number  INTEGER PRIMARY KEY,
	run     TEXT NOT NULL UNIQUE,
	written BIGINT NOT NULL UNIQUE,
	bytes   BIGINT NOT NULL
);

-- Data is a line in JSON. The first of a record is a beginning.
CREATE TABLE record_line (
	run  BIGINT NOT NULL,
	n    BIGINT NOT NULL,
	data BLOB NOT NULL,
	PRIMARY KEY (run, n)
);

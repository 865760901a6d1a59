-- Decision records, version 1.

CREATE SEQUENCE @.record_written;

-- Written has the order in which records were written to last; bytes is what their lines come to. The row is locked by who writes.
CREATE TABLE @.record_run (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run     text COLLATE "C" NOT NULL UNIQUE,
    written bigint NOT NULL,
    bytes   bigint NOT NULL
);
CREATE INDEX record_run_written ON @.record_run (written);

-- Data is a line in JSON. The first of a record is a beginning.
CREATE TABLE @.record_line (
    run  bigint NOT NULL,
    n    bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (run, n)
);

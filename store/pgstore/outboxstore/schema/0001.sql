-- The outbox of notifications, version 1. Times are milliseconds since 1970, NULL is none. Names are any bytes.

CREATE SEQUENCE @.outbox_seq;

CREATE TABLE @.outbox_entry (
    seq    bigint PRIMARY KEY,
    thread bytea NOT NULL,
    data   bytea NOT NULL,
    at     bigint
);
CREATE INDEX outbox_entry_thread ON @.outbox_entry (thread, seq);

-- Keys stay when their entries are removed, until their tasks are forgotten.
CREATE TABLE @.outbox_key (
    thread bytea NOT NULL,
    key    bytea NOT NULL,
    PRIMARY KEY (thread, key)
);

CREATE TABLE @.outbox_record (
    thread bytea NOT NULL,
    task   bytea NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (thread, task)
);

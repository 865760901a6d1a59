-- Threads, version 1.

-- Threads have numbers, so that long ids are there once. An id is any bytes. The row is locked by who writes to the thread.
CREATE TABLE @.session_thread (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    thread bytea NOT NULL UNIQUE
);

-- A log only grows: a line is a message that comes next, or one that stands in the place of the message with its id. Data is the line
-- in JSON.
CREATE TABLE @.session_line (
    thread bigint NOT NULL,
    n      bigint NOT NULL,
    id     bytea NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (thread, n)
);
CREATE INDEX session_line_id ON @.session_line (thread, id);

CREATE TABLE @.session_state (
    thread bigint NOT NULL PRIMARY KEY,
    rev    bigint NOT NULL,
    data   bytea NOT NULL
);

CREATE TABLE @.session_event (
    thread bigint NOT NULL,
    n      bigint NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (thread, n)
);

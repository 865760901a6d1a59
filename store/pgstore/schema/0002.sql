-- The latest events of dispatches, in batches, and of each dispatch what the last one was. They are no truth about a
-- run: a crash of the server may empty them, and nothing of them is in the log.
CREATE UNLOGGED TABLE @.event (
    dispatch text COLLATE "C" NOT NULL,
    first    bigint NOT NULL,
    last     bigint NOT NULL,
    fence    bigint NOT NULL,
    at       bigint NOT NULL,
    data     bytea NOT NULL,
    PRIMARY KEY (dispatch, first)
);
CREATE INDEX event_time ON @.event (at);

CREATE UNLOGGED TABLE @.event_last (
    dispatch text COLLATE "C" PRIMARY KEY,
    first    bigint NOT NULL,
    last     bigint NOT NULL,
    fence    bigint NOT NULL,
    at       bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX event_last_time ON @.event_last (at);

-- "@." is the schema. Names and keys are bytea: any bytes, and the order of Go's strings.

-- Revisions, and ids of threads.
CREATE SEQUENCE @.revision;

CREATE TABLE @.thread (
    id        bigint PRIMARY KEY,
    name      bytea NOT NULL UNIQUE,
    revision  bigint NOT NULL,
    -- The latest batch ids, and the revisions that they made.
    applied   bytea[] NOT NULL,
    revisions bigint[] NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE @.cell (
    thread bigint NOT NULL,
    kind   bytea NOT NULL,
    key    bytea NOT NULL,
    value  bytea NOT NULL,
    PRIMARY KEY (thread, kind, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

-- The places of cells in indexes. slot is a digest of the index and the group. ref has thread, kind and key of the cell so that refs sort
-- as Scan lists them; an index entry, which has at most 2,704 bytes, has the beginning of it.
CREATE TABLE @.place (
    thread     bigint NOT NULL,
    kind       bytea NOT NULL,
    cell       bytea NOT NULL,
    slot       bytea NOT NULL,
    group_name bytea NOT NULL,
    key        bytea NOT NULL,
    ref        bytea NOT NULL,
    sole       boolean NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX place_cell ON @.place (thread, kind, cell);
CREATE INDEX place_scan ON @.place (slot, key, substring(ref, 1, 1500));
CREATE UNIQUE INDEX place_sole ON @.place (slot, key) WHERE sole;

CREATE TABLE @.log (
    thread bigint NOT NULL,
    name   bytea NOT NULL,
    last   bigint NOT NULL,
    PRIMARY KEY (thread, name)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

CREATE TABLE @.entry (
    thread bigint NOT NULL,
    log    bytea NOT NULL,
    seq    bigint NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (thread, log, seq)
);

-- Events of streams, in batches. A crash of the server empties unlogged tables. at is in microseconds since 1970.
CREATE UNLOGGED TABLE @.event (
    stream bytea NOT NULL,
    last   bigint NOT NULL,
    first  bigint NOT NULL,
    fence  bigint NOT NULL,
    at     bigint NOT NULL,
    data   bytea NOT NULL,
    PRIMARY KEY (stream, last)
);
CREATE INDEX event_at ON @.event (at);

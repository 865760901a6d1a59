-- "@." is the schema, "@channel" the channel of its notifications. Names and keys are bytea: any bytes, and the order of Go's strings.

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

-- Notifications for processes behind a pooler, which cannot listen. poller has one row; until is when the last of them will be gone.
CREATE UNLOGGED TABLE @.poller (
    id    integer PRIMARY KEY,
    until timestamptz NOT NULL
);
CREATE UNLOGGED TABLE @.notice (
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    at          timestamptz NOT NULL DEFAULT now(),
    payload     text NOT NULL
);
CREATE INDEX notice_transaction ON @.notice (transaction);

-- tell notifies other processes when the transaction commits.
CREATE FUNCTION @.tell(payloads text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('@channel', p.payload) FROM unnest(payloads) p(payload);
    IF EXISTS (SELECT FROM @.poller WHERE id = 1 AND until > now()) THEN
        INSERT INTO @.notice (payload) SELECT p.payload FROM unnest(payloads) p(payload);
    END IF;
END $$;

-- poll returns the notifications of the transactions that were not visible in a snapshot, and a newer snapshot.
CREATE FUNCTION @.poll(since text, OUT snapshot text, OUT payloads text[]) LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM @.poller WHERE id = 1 AND until > now() + interval '1 minute') THEN
        INSERT INTO @.poller VALUES (1, now() + interval '2 minutes') ON CONFLICT (id) DO UPDATE SET until = excluded.until;
        DELETE FROM @.notice WHERE at < now() - interval '2 minutes';
    END IF;
    SELECT pg_current_snapshot()::text, ARRAY(
        SELECT n.payload FROM @.notice n
        WHERE n.transaction >= pg_snapshot_xmin(since::pg_snapshot) AND NOT pg_visible_in_snapshot(n.transaction, since::pg_snapshot)
    ) INTO snapshot, payloads;
END $$;

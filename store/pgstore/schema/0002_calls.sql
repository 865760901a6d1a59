-- The calls of a store. Each is one statement. Their plans must use the indexes, whatever the planner believes about the tables today:
-- hence the settings.

-- apply applies a batch. base is -1 for any revision. outcome is 0; 1 for another revision than base, which is returned; or 2 for entries
-- that do not follow their logs. place_of, put_from and put_to tie places to puts, by their positions: those of put n are place_of = n,
-- from put_from[n] to put_to[n]. entry_nth numbers the entries of a log within the batch. What a batch does not have is NULL.
CREATE FUNCTION @.apply(
    thread_name bytea, batch bytea, base bigint, dropping boolean,
    delete_kind bytea[], delete_from bytea[], delete_to bytea[],
    put_kind bytea[], put_key bytea[], put_value bytea[], put_from integer[], put_to integer[],
    place_of integer[], place_slot bytea[], place_group bytea[], place_key bytea[], place_ref bytea[], place_sole boolean[],
    trim_log bytea[], trim_before bigint[],
    entry_log bytea[], entry_nth bigint[], entry_seq bigint[], entry_data bytea[],
    OUT revision bigint, OUT outcome integer
) LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    t       bigint;
    current bigint;
    ids     bytea[];
    made_by bigint[];
    made    boolean := false;
    n       integer;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    outcome := 0;
    LOOP
        SELECT h.id, h.revision, h.applied, h.revisions INTO t, current, ids, made_by
            FROM @.thread h WHERE h.name = thread_name FOR UPDATE;
        EXIT WHEN FOUND;
        IF base > 0 THEN
            revision := 0; outcome := 1;
            RETURN;
        END IF;
        INSERT INTO @.thread AS h (id, name, revision, applied, revisions) VALUES (nextval('@.revision'), thread_name, 0, '{}', '{}')
            ON CONFLICT (name) DO NOTHING RETURNING h.id, h.revision, h.applied, h.revisions INTO t, current, ids, made_by;
        made := FOUND;
        EXIT WHEN made; -- else another transaction has made it meanwhile
    END LOOP;
    IF NOT made THEN
        n := CASE WHEN batch <> '' THEN array_position(ids, batch) END;
        IF n IS NOT NULL THEN
            revision := made_by[n];
            RETURN;
        END IF;
        IF base >= 0 AND base <> current THEN
            revision := current; outcome := 1;
            RETURN;
        END IF;
    END IF;
    IF EXISTS (
        SELECT FROM unnest(entry_log, entry_nth, entry_seq) e(log, nth, seq)
        WHERE e.seq <> 0 AND e.seq <> e.nth + CASE WHEN made OR dropping THEN 0 ELSE
            coalesce((SELECT l.last FROM @.log l WHERE l.thread = t AND l.name = e.log), 0) END
    ) THEN
        IF made THEN
            DELETE FROM @.thread WHERE id = t;
        END IF;
        revision := current; outcome := 2;
        RETURN;
    END IF;

    IF dropping AND NOT made THEN
        DELETE FROM @.place WHERE thread = t;
        DELETE FROM @.cell WHERE thread = t;
        DELETE FROM @.entry WHERE thread = t;
        DELETE FROM @.log WHERE thread = t;
    END IF;
    -- Loops, since a join may begin with all cells of the thread.
    FOR i IN 1 .. CASE WHEN made THEN 0 ELSE coalesce(cardinality(delete_kind), 0) END LOOP
        DELETE FROM @.place p WHERE p.thread = t AND p.kind = delete_kind[i] AND p.cell >= delete_from[i] AND p.cell < delete_to[i];
        DELETE FROM @.cell c WHERE c.thread = t AND c.kind = delete_kind[i] AND c.key >= delete_from[i] AND c.key < delete_to[i];
    END LOOP;
    FOR i IN 1 .. CASE WHEN made THEN 0 ELSE coalesce(cardinality(put_kind), 0) END LOOP
        DELETE FROM @.place p WHERE p.thread = t AND p.kind = put_kind[i] AND p.cell = put_key[i] AND NOT EXISTS (
            SELECT FROM generate_series(put_from[i], put_to[i]) n
            WHERE place_slot[n] = p.slot AND place_key[n] = p.key AND place_sole[n] = p.sole);
    END LOOP;
    IF put_kind IS NOT NULL THEN
        INSERT INTO @.cell AS c (thread, kind, key, value)
            SELECT t, p.kind, p.key, p.value FROM unnest(put_kind, put_key, put_value) p(kind, key, value)
            ON CONFLICT (thread, kind, key) DO UPDATE SET value = excluded.value;
    END IF;
    IF place_of IS NOT NULL THEN -- in one order, so that fewer batches deadlock
        INSERT INTO @.place (thread, kind, cell, slot, group_name, key, ref, sole)
            SELECT t, put_kind[n.of], put_key[n.of], n.slot, n.group_name, n.key, n.ref, n.sole
            FROM unnest(place_of, place_slot, place_group, place_key, place_ref, place_sole) n(of, slot, group_name, key, ref, sole)
            WHERE made OR ( -- not EXISTS, which may hash all places of the thread
                SELECT p.thread FROM @.place p WHERE p.thread = t AND p.kind = put_kind[n.of] AND p.cell = put_key[n.of]
                    AND p.slot = n.slot AND p.key = n.key AND p.sole = n.sole LIMIT 1) IS NULL
            ORDER BY n.slot, n.key;
    END IF;
    FOR i IN 1 .. CASE WHEN made THEN 0 ELSE coalesce(cardinality(trim_log), 0) END LOOP
        DELETE FROM @.entry e WHERE e.thread = t AND e.log = trim_log[i] AND e.seq < trim_before[i];
    END LOOP;
    IF entry_log IS NOT NULL THEN
        INSERT INTO @.entry (thread, log, seq, data)
            SELECT t, e.log, e.nth + coalesce((SELECT l.last FROM @.log l WHERE l.thread = t AND l.name = e.log), 0), e.data
            FROM unnest(entry_log, entry_nth, entry_data) e(log, nth, data);
        INSERT INTO @.log AS l (thread, name, last) SELECT t, e.log, max(e.nth) FROM unnest(entry_log, entry_nth) e(log, nth) GROUP BY e.log
            ON CONFLICT (thread, name) DO UPDATE SET last = l.last + excluded.last;
    END IF;

    revision := nextval('@.revision'); -- here, since the thread is locked: it grows
    IF dropping AND NOT EXISTS (SELECT FROM @.cell WHERE thread = t) AND NOT EXISTS (SELECT FROM @.log WHERE thread = t) THEN
        DELETE FROM @.thread WHERE id = t;
    ELSE
        IF batch <> '' THEN
            n := greatest(cardinality(ids) - @remembered + 2, 1);
            ids := ids[n:] || batch;
            made_by := made_by[n:] || revision;
        END IF;
        UPDATE @.thread SET revision = apply.revision, applied = ids, revisions = made_by WHERE id = t;
    END IF;
END $$;

-- read returns parts of a thread: its revision (what = 0), cells of range nth (1), and of span nth the last number (2) and entries (3).
-- It is stable, so that all is as of one snapshot.
CREATE FUNCTION @.read(
    thread_name bytea, range_kind bytea[], range_from bytea[], range_to bytea[], range_limit bigint[],
    span_log bytea[], span_from bigint[], span_limit bigint[]
) RETURNS TABLE (what integer, nth integer, cell_key bytea, number bigint, bytes bytea) LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
    t bigint;
BEGIN
    SELECT h.id, h.revision INTO t, number FROM @.thread h WHERE h.name = thread_name;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    what := 0;
    RETURN NEXT;
    FOR i IN 1 .. coalesce(cardinality(range_kind), 0) LOOP
        RETURN QUERY SELECT 1, i, c.key, NULL::bigint, c.value FROM @.cell c
            WHERE c.thread = t AND c.kind = range_kind[i] AND c.key >= range_from[i] AND c.key < range_to[i]
            ORDER BY c.key LIMIT range_limit[i];
    END LOOP;
    FOR i IN 1 .. coalesce(cardinality(span_log), 0) LOOP
        RETURN QUERY SELECT 2, i, NULL::bytea, l.last, NULL::bytea FROM @.log l WHERE l.thread = t AND l.name = span_log[i];
        RETURN QUERY SELECT 3, i, NULL::bytea, e.seq, e.data FROM @.entry e
            WHERE e.thread = t AND e.log = span_log[i] AND e.seq >= span_from[i] ORDER BY e.seq LIMIT span_limit[i];
    END LOOP;
END $$;

-- scan lists the places of a slot from low_key and after low_ref there, up to high_key.
CREATE FUNCTION @.scan(slot_id bytea, low_key bytea, low_ref bytea, high_key bytea, most bigint, with_values boolean)
RETURNS TABLE (place_key bytea, place_ref bytea, cell_value bytea) LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
BEGIN
    RETURN QUERY SELECT s.key, s.ref, CASE WHEN with_values THEN
            (SELECT c.value FROM @.cell c WHERE c.thread = s.thread AND c.kind = s.kind AND c.key = s.cell) END
        FROM (
            SELECT p.* FROM @.place p
            WHERE p.slot = slot_id AND (p.key, substring(p.ref, 1, 1500)) >= (low_key, substring(low_ref, 1, 1500)) AND p.key < high_key
                AND (p.key, p.ref) > (low_key, low_ref)
            ORDER BY p.key, substring(p.ref, 1, 1500), p.ref LIMIT most
        ) s;
END $$;

-- append_events adds batches of events, and returns the positions of those that were refused. locks keeps two writers of a stream apart.
CREATE FUNCTION @.append_events(
    streams bytea[], fences bigint[], firsts bigint[], lasts bigint[], keeps bigint[], ats bigint[], datas bytea[],
    topics text[], locks bigint[]
) RETURNS integer[] LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off
AS $$
DECLARE
    l       @.event;
    refused integer[] := '{}';
    added   text[] := '{}';
BEGIN
    PERFORM pg_advisory_xact_lock(k) FROM unnest(locks) k;
    FOR i IN 1 .. cardinality(streams) LOOP
        SELECT e.stream, e.last, e.first, e.fence INTO l FROM @.event e WHERE e.stream = streams[i] ORDER BY e.last DESC LIMIT 1;
        CONTINUE WHEN l.fence = fences[i] AND l.first = firsts[i];
        IF l.fence > fences[i] OR l.last >= firsts[i] THEN
            refused := refused || i;
            CONTINUE;
        END IF;
        DELETE FROM @.event e WHERE e.stream = streams[i] AND e.last < keeps[i];
        INSERT INTO @.event (stream, last, first, fence, at, data) VALUES (streams[i], lasts[i], firsts[i], fences[i], ats[i], datas[i]);
        added := added || topics[i];
    END LOOP;
    PERFORM @.tell(added);
    RETURN refused;
END $$;

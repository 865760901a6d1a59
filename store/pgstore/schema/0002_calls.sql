-- The calls of a store. Each is one statement. Their plans must use the indexes, whatever the planner believes about the tables today:
-- hence the settings. "@channel" is the channel of the store's notifications.

-- apply applies batches of different threads, each of them or nothing of it. base is -1 for any revision. Batch n has those deletes, puts,
-- trims and entries of which the array _of has n, and place_of, put_from and put_to tie places to puts in the same way: those of put n are
-- place_of = n, from put_from[n] to put_to[n]. entry_nth numbers the entries of a log within a batch. An array is NULL if it has nothing.
-- outcome is 0; 1 for another revision than base, which made_revision is; 2 for entries that do not follow their logs; or 3 for a thread
-- that another transaction has locked. alone is for one batch, which waits for such a transaction instead.
CREATE FUNCTION @.apply(
    alone boolean, thread_name bytea[], batch bytea[], base bigint[], dropping boolean[],
    delete_of integer[], delete_kind bytea[], delete_from bytea[], delete_to bytea[],
    put_of integer[], put_kind bytea[], put_key bytea[], put_value bytea[], put_from integer[], put_to integer[],
    place_of integer[], place_slot bytea[], place_group bytea[], place_key bytea[], place_ref bytea[], place_sole boolean[],
    trim_of integer[], trim_log bytea[], trim_before bigint[],
    entry_of integer[], entry_log bytea[], entry_nth bigint[], entry_seq bigint[], entry_data bytea[],
    OUT made_revision bigint[], OUT outcome integer[]
) LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off SET jit = off
AS $$
#variable_conflict use_column
DECLARE
    batches CONSTANT integer := cardinality(thread_name);
    -- For each batch that is applied the thread, if it had something to keep, too, and where its row is.
    threads bigint[]  := array_fill(NULL::bigint, ARRAY[batches]);
    olds    bigint[]  := threads;
    rows    tid[]     := array_fill(NULL::tid, ARRAY[batches]);
    fresh   boolean[] := array_fill(true, ARRAY[coalesce(cardinality(place_of), 0)]);
    dropped bigint[];
    gone    tid[];
    kept    integer[];
    h       record;
    n       integer;
BEGIN
    IF current_setting('synchronous_commit') = 'off' THEN
        PERFORM set_config('synchronous_commit', 'on', true);
    END IF;

    IF NOT alone THEN -- other transactions may also have inserted a thread or a place
        PERFORM set_config('lock_timeout', '50ms', true);
    END IF;

    outcome := array_fill(3, ARRAY[batches]);
    made_revision := array_fill(0::bigint, ARRAY[batches]);
    LOOP
        FOR h IN
            SELECT b.n, r.* FROM unnest(thread_name, batch, outcome) WITH ORDINALITY b(name, id, outcome, n)
            CROSS JOIN LATERAL (
                SELECT r.ctid AS at, r.id, r.revision, CASE WHEN b.id <> '' THEN r.revisions[array_position(r.applied, b.id)] END AS repeated
                FROM @.thread r WHERE r.name = b.name FOR UPDATE SKIP LOCKED
            ) r WHERE b.outcome = 3
        LOOP
            IF h.repeated IS NOT NULL THEN
                outcome[h.n] := 0; made_revision[h.n] := h.repeated;
            ELSIF base[h.n] >= 0 AND base[h.n] <> h.revision THEN
                outcome[h.n] := 1; made_revision[h.n] := h.revision;
            ELSE
                outcome[h.n] := 0; threads[h.n] := h.id; rows[h.n] := h.at;
                IF dropping[h.n] THEN
                    dropped := dropped || h.id;
                ELSE
                    olds[h.n] := h.id;
                END IF;
            END IF;
        END LOOP;
        EXIT WHEN NOT 3 = ANY (outcome);
        FOR h IN -- in one order, so that fewer transactions deadlock
            INSERT INTO @.thread AS r (id, name, revision, applied, revisions)
                SELECT nextval('@.revision'), b.name, 0, '{}', '{}'
                FROM unnest(thread_name, base, outcome) b(name, base, outcome) WHERE b.outcome = 3 AND b.base <= 0 ORDER BY b.name
                ON CONFLICT (name) DO NOTHING RETURNING r.name, r.ctid AS at, r.id
        LOOP
            n := array_position(thread_name, h.name);
            outcome[n] := 0; threads[n] := h.id; rows[n] := h.at;
        END LOOP;
        EXIT WHEN NOT alone OR outcome[1] <> 3;
        PERFORM FROM @.thread r WHERE r.name = thread_name[1] FOR UPDATE;
        IF NOT FOUND AND base[1] > 0 THEN
            outcome[1] := 1;
            EXIT;
        END IF;
    END LOOP;
    IF entry_of IS NOT NULL THEN
        FOR n IN
            SELECT DISTINCT e.of FROM unnest(entry_of, entry_log, entry_nth, entry_seq) e(of, log, nth, seq)
            WHERE threads[e.of] IS NOT NULL AND e.seq <> 0
                AND e.seq <> e.nth + coalesce((SELECT l.last FROM @.log l WHERE l.thread = olds[e.of] AND l.name = e.log), 0)
        LOOP
            DELETE FROM @.thread r WHERE r.id = threads[n] AND r.revision = 0; -- it was inserted here
            dropped := array_remove(dropped, threads[n]);
            outcome[n] := 2; threads[n] := NULL; olds[n] := NULL; rows[n] := NULL;
        END LOOP;
    END IF;

    IF cardinality(dropped) > 0 THEN
        DELETE FROM @.place WHERE thread = ANY (dropped);
        DELETE FROM @.cell WHERE thread = ANY (dropped);
        DELETE FROM @.entry WHERE thread = ANY (dropped);
        DELETE FROM @.log WHERE thread = ANY (dropped);
    END IF;
    -- OFFSET keeps joins from beginning with all rows of a table, or of a thread.
    IF delete_of IS NOT NULL THEN
        DELETE FROM @.place WHERE ctid = ANY (ARRAY(
            SELECT p.at FROM unnest(delete_of, delete_kind, delete_from, delete_to) d(of, kind, low, high) CROSS JOIN LATERAL (
                SELECT p.ctid AS at FROM @.place p WHERE p.thread = olds[d.of] AND p.kind = d.kind AND p.cell >= d.low AND p.cell < d.high OFFSET 0
            ) p));
        DELETE FROM @.cell WHERE ctid = ANY (ARRAY(
            SELECT c.at FROM unnest(delete_of, delete_kind, delete_from, delete_to) d(of, kind, low, high) CROSS JOIN LATERAL (
                SELECT c.ctid AS at FROM @.cell c WHERE c.thread = olds[d.of] AND c.kind = d.kind AND c.key >= d.low AND c.key < d.high OFFSET 0
            ) c));
    END IF;
    IF put_of IS NOT NULL THEN
        SELECT array_agg(p.at) FILTER (WHERE k.n IS NULL), array_agg(k.n) FILTER (WHERE k.n IS NOT NULL) INTO gone, kept
            FROM unnest(put_of, put_kind, put_key, put_from, put_to) u(of, kind, key, low, high)
            CROSS JOIN LATERAL (
                SELECT p.ctid AS at, p.slot, p.key, p.sole FROM @.place p WHERE p.thread = olds[u.of] AND p.kind = u.kind AND p.cell = u.key OFFSET 0
            ) p
            LEFT JOIN LATERAL (
                SELECT k.n FROM generate_series(u.low, u.high) k(n)
                WHERE place_slot[k.n] = p.slot AND place_key[k.n] = p.key AND place_sole[k.n] = p.sole LIMIT 1
            ) k ON true
            WHERE olds[u.of] IS NOT NULL;
        IF gone IS NOT NULL THEN
            DELETE FROM @.place WHERE ctid = ANY (gone);
        END IF;
        INSERT INTO @.cell AS c (thread, kind, key, value)
            SELECT threads[p.of], p.kind, p.key, p.value FROM unnest(put_of, put_kind, put_key, put_value) p(of, kind, key, value)
            WHERE threads[p.of] IS NOT NULL
            ON CONFLICT (thread, kind, key) DO UPDATE SET value = excluded.value;
    END IF;
    IF place_of IS NOT NULL THEN
        FOREACH n IN ARRAY coalesce(kept, '{}') LOOP
            fresh[n] := false;
        END LOOP;
        INSERT INTO @.place (thread, kind, cell, slot, group_name, key, ref, sole)
            SELECT threads[put_of[n.of]], put_kind[n.of], put_key[n.of], n.slot, n.group_name, n.key, n.ref, n.sole
            FROM unnest(place_of, place_slot, place_group, place_key, place_ref, place_sole, fresh)
                n(of, slot, group_name, key, ref, sole, fresh)
            WHERE n.fresh AND threads[put_of[n.of]] IS NOT NULL ORDER BY n.slot, n.key; -- as above
    END IF;
    FOR k IN 1 .. coalesce(cardinality(trim_of), 0) LOOP
        DELETE FROM @.entry e WHERE e.thread = olds[trim_of[k]] AND e.log = trim_log[k] AND e.seq < trim_before[k];
    END LOOP;
    IF entry_of IS NOT NULL THEN
        INSERT INTO @.entry (thread, log, seq, data)
            SELECT threads[e.of], e.log, e.nth + coalesce((SELECT l.last FROM @.log l WHERE l.thread = olds[e.of] AND l.name = e.log), 0), e.data
            FROM unnest(entry_of, entry_log, entry_nth, entry_data) e(of, log, nth, data) WHERE threads[e.of] IS NOT NULL;
        INSERT INTO @.log AS l (thread, name, last)
            SELECT threads[e.of], e.log, max(e.nth) FROM unnest(entry_of, entry_log, entry_nth) e(of, log, nth)
            WHERE threads[e.of] IS NOT NULL GROUP BY e.of, e.log
            ON CONFLICT (thread, name) DO UPDATE SET last = l.last + excluded.last;
    END IF;

    FOR n IN 1 .. batches LOOP -- here, since the threads are locked: their revisions grow
        IF threads[n] IS NOT NULL THEN
            made_revision[n] := nextval('@.revision');
            IF dropping[n] THEN
                DELETE FROM @.thread r WHERE r.id = threads[n] AND NOT EXISTS (SELECT FROM @.cell c WHERE c.thread = r.id)
                    AND NOT EXISTS (SELECT FROM @.log l WHERE l.thread = r.id);
            END IF;
        END IF;
    END LOOP;
    UPDATE @.thread r SET revision = u.revision,
            applied = CASE WHEN u.id = '' THEN r.applied ELSE r.applied[greatest(cardinality(r.applied) - @remembered + 2, 1):] || u.id END,
            revisions = CASE WHEN u.id = '' THEN r.revisions ELSE r.revisions[greatest(cardinality(r.applied) - @remembered + 2, 1):] || u.revision END
        FROM unnest(rows, made_revision, batch) u(at, revision, id) WHERE r.ctid = u.at;
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
    PERFORM pg_notify('@channel', a.topic) FROM unnest(added) a(topic);
    RETURN refused;
END $$;

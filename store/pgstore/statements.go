package pgstore

// statements are the calls, as SQL. The casts are for modes in which pgx does not ask the server for types.
type statements struct{ version, apply, notify, read, scan, count, appendEvents, readEvents, purgeEvents, dropEvents string }

func newStatements(schema string) statements {
	return statements{
		version: expand(schema, `SELECT coalesce(max(version), 0) FROM @.schema_version`),
		apply: expand(schema, `SELECT made_revision, outcome FROM @.apply($1::boolean, $2::bytea[], $3::bytea[], $4::bigint[], $5::boolean[],
			$6::integer[], $7::bytea[], $8::bytea[], $9::bytea[],
			$10::integer[], $11::bytea[], $12::bytea[], $13::bytea[], $14::integer[], $15::integer[],
			$16::integer[], $17::bytea[], $18::bytea[], $19::bytea[], $20::bytea[], $21::boolean[],
			$22::integer[], $23::bytea[], $24::bigint[], $25::integer[], $26::bytea[], $27::bigint[], $28::bigint[], $29::bytea[])`),
		notify: expand(schema, `SELECT pg_notify('@channel', p.payload) FROM unnest($1::text[]) p(payload)`),
		read: expand(schema, `SELECT what, nth::bigint, cell_key, number, bytes
			FROM @.read($1::bytea, $2::bytea[], $3::bytea[], $4::bytea[], $5::bigint[], $6::bytea[], $7::bigint[], $8::bigint[])`),
		scan: expand(schema, `SELECT place_key, place_ref, cell_value
			FROM @.scan($1::bytea, $2::bytea, $3::bytea, $4::bytea, $5::bigint, $6::boolean)`),
		count: expand(schema, `SELECT (SELECT p.group_name FROM @.place p WHERE p.slot = s.slot LIMIT 1), s.n
			FROM (SELECT slot, count(*) AS n FROM @.place WHERE slot >= $1::bytea AND slot < $2::bytea GROUP BY slot) s`),
		appendEvents: expand(schema, `SELECT @.append_events($1::bytea[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[],
			$7::bytea[], $8::text[], $9::bigint[])`),
		readEvents: expand(schema, `SELECT fence, first, last, at, data FROM @.event WHERE stream = $1::bytea AND last > $2::bigint
			ORDER BY last LIMIT $3::bigint`),
		purgeEvents: expand(schema, `DELETE FROM @.event WHERE at < $1::bigint`),
		dropEvents:  expand(schema, `DELETE FROM @.event WHERE stream = ANY ($1::bytea[])`),
	}
}

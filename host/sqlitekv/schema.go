package sqlitekv

import (
	"context"
	"database/sql"
	"fmt"
)

// What marks a file as ours, and the version of its tables.
const (
	applicationID = 0x6d6f6b76 // "mokv"
	version       = 1
)

// schema is version 1. The sums of a namespace are kept with it, so that a quota
// costs a look and not a walk.
const schema = `
CREATE TABLE kv (
	namespace BLOB NOT NULL,
	key       BLOB NOT NULL,
	value     BLOB NOT NULL,
	PRIMARY KEY (namespace, key)
) WITHOUT ROWID, STRICT;
CREATE TABLE usage (
	namespace BLOB NOT NULL PRIMARY KEY,
	keys      INTEGER NOT NULL,
	bytes     INTEGER NOT NULL
) WITHOUT ROWID, STRICT;
CREATE TRIGGER kv_insert AFTER INSERT ON kv BEGIN
	INSERT INTO usage VALUES (new.namespace, 1, length(new.key) + length(new.value))
	ON CONFLICT (namespace) DO UPDATE SET keys = keys + excluded.keys, bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER kv_update AFTER UPDATE ON kv BEGIN
	UPDATE usage SET bytes = bytes + length(new.value) - length(old.value) WHERE namespace = new.namespace;
END;
CREATE TRIGGER kv_delete AFTER DELETE ON kv BEGIN
	UPDATE usage SET keys = keys - 1, bytes = bytes - length(old.key) - length(old.value) WHERE namespace = old.namespace;
	DELETE FROM usage WHERE namespace = old.namespace AND keys = 0;
END;
PRAGMA application_id = %d;
PRAGMA user_version = %d;
`

// migrate brings an empty file to the current version and refuses a strange one.
func (s *Store) migrate(ctx context.Context) error {
	return s.write(ctx, func(tx *sql.Tx) error {
		var id, have, tables int
		for query, to := range map[string]*int{
			"PRAGMA application_id": &id, "PRAGMA user_version": &have, "SELECT count(*) FROM sqlite_schema": &tables,
		} {
			if err := tx.QueryRowContext(ctx, query).Scan(to); err != nil {
				return err
			}
		}
		switch {
		case id == applicationID && have == version:
			return nil
		case id == applicationID:
			return fmt.Errorf("it has version %d and this program knows %d; use a newer program", have, version)
		case id != 0 || have != 0 || tables != 0:
			return fmt.Errorf("it is a database of another program (application %#x, version %d, %d tables); name another file", id, have, tables)
		}
		_, err := tx.ExecContext(ctx, fmt.Sprintf(schema, applicationID, version))
		return err
	})
}

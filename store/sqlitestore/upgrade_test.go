package sqlitestore_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// TestUpgrade_earlier holds that a file of an earlier version of Mortise, which had other tables, is refused with a hint.
func TestUpgrade_earlier(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	alter(t, path, "PRAGMA journal_mode = WAL", "PRAGMA application_id = 0x6d6f7274",
		"CREATE TABLE schema_version (name TEXT NOT NULL PRIMARY KEY, version BIGINT NOT NULL)",
		"INSERT INTO schema_version VALUES ('mailbox', 3)")
	for _, existing := range []bool{false, true} {
		cfg := sqlitestore.Config{Path: path, Existing: existing}
		refused(t, cfg, path, "it was written by an older version of Mortise; start with a new file")
		if _, err := sqlitestore.Open(t.Context(), cfg); errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
	}
}

// TestUpgrade_newer holds that a file of a newer schema is refused, and comes to no harm.
func TestUpgrade_newer(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	must(t, open(t, path).Close(t.Context()))
	alter(t, path, "PRAGMA user_version = 99")
	for _, existing := range []bool{false, true} {
		refused(t, sqlitestore.Config{Path: path, Existing: existing}, path, "have version 99, and this program knows 1; use a newer version")
	}
	alter(t, path, "PRAGMA user_version = 1")
	must(t, open(t, path).Health(t.Context()))
}

package sqlitestore_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/filetest"
)

func openName(ctx context.Context, name string) (mailbox.Store, func(context.Context) error, error) {
	s, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: name})
	if err != nil {
		return nil, nil, err
	}
	return s, s.Close, nil
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "mailbox.db")
	mailboxtest.TestCrash(t, openName, path)
	filetest.Intact(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var counted, there int
	err = db.QueryRowContext(t.Context(), `SELECT (SELECT queued + claimed + acked + cancelled + superseded + dead_letter FROM tally), (SELECT count(*) FROM dispatch)`).Scan(&counted, &there)
	if err != nil || counted != there {
		t.Errorf("%d dispatches, counted %d: %v", there, counted, err)
	}
}

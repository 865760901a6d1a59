package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// TestRestart holds that a store fails in one line while its server is down, and works when it is back, notifications included.
func TestRestart(t *testing.T) {
	t.Parallel()
	server, err := pgtest.New(t.Context(), "fsync=off")
	pgtest.Need(t, err)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	s := open(t, pgstore.Config{URL: server.URL()})
	w, err := s.Watch(t.Context(), "topic")
	if err != nil {
		t.Fatal(err)
	}
	apply(t, s, "t")
	if err := s.Health(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for err = s.Health(t.Context()); err == nil && time.Since(start) < 10*time.Second; { // processes of the server end moments later
		err = s.Health(t.Context())
	}
	if err == nil || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), server.Password()) {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	if _, err := s.Apply(t.Context(), put("t", store.AnyRevision)); err == nil || strings.Contains(err.Error(), server.Password()) {
		t.Errorf("got %v", err)
	}
	if _, err := store.ApplySurely(t.Context(), s, put("t", store.AnyRevision)); err == nil || errors.Is(err, store.ErrOutcomeUnknown) {
		t.Errorf("a known outcome is %v", err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Health(t.Context()); err != nil {
		t.Error(err)
	}
	<-w // the connection is back
	b := put("t", store.AnyRevision)
	b.Notify = []string{"topic"}
	if _, err := s.Apply(t.Context(), b); err != nil {
		t.Error(err)
	}
	select {
	case <-w:
	case <-time.After(10 * time.Second):
		t.Error("no notification")
	}
	if err := server.Kill(); err != nil { // all connections of the pool are lost
		t.Fatal(err)
	}
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if out, err := s.Read(t.Context(), "t", store.Query{}); err != nil || out.Revision == 0 {
		t.Errorf("got %+v, %v", out, err)
	}
}

// TestTerminated holds that nothing is lost or doubled while the server ends connections.
func TestTerminated(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.URL += "&application_name=" + c.Schema
	s := open(t, c)
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	const writers, each = 4, 40
	var done atomic.Int64
	var wg sync.WaitGroup
	for n := range writers {
		wg.Go(func() {
			for i := range each {
				b := store.Batch{Thread: "t", Base: store.AnyRevision, ID: fmt.Sprint(n, ".", i)}
				b.Append = []store.Entry{{Log: "l", Data: []byte(b.ID)}}
				_, err := store.ApplySurely(t.Context(), s, b)
				for errors.Is(err, store.ErrOutcomeUnknown) {
					_, err = store.ApplySurely(t.Context(), s, b)
				}
				if err != nil {
					t.Errorf("batch %s: %v", b.ID, err)
				}
				done.Add(1)
			}
		})
	}
	const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%' || $1 || '.apply(%'`
	ended := int64(0)
	for next := int64(20); next < writers*each; next += 20 {
		for done.Load() < next {
			<-time.After(time.Millisecond)
		}
		tag, err := conn.Exec(t.Context(), end, c.Schema+`"`)
		if err != nil {
			t.Fatal(err)
		}
		ended += tag.RowsAffected()
	}
	wg.Wait()
	if ended == 0 {
		t.Error("no connection was ended")
	}
	out, err := s.Read(t.Context(), "t", store.Query{Entries: []store.Span{{Log: "l", Limit: 1000}}})
	if err != nil || len(out.Entries) != writers*each {
		t.Fatalf("%d entries, want %d: %v", len(out.Entries), writers*each, err)
	}
	seen := map[string]bool{}
	for _, e := range out.Entries {
		if seen[string(e.Data)] {
			t.Errorf("entry %s is there twice", e.Data)
		}
		seen[string(e.Data)] = true
	}
}

// TestCancelled holds that calls whose context ends while they wait for a lock fail so, and leave the pool as it was.
func TestCancelled(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Conns = 2
	s := open(t, c)
	apply(t, s, "t")
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	lock := func(text string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	lock(`BEGIN; SELECT FROM ` + c.Schema + `.thread FOR UPDATE`)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := s.Apply(ctx, put("t", store.AnyRevision, store.Cell{Kind: "late"})); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	apply(t, s, "u")
	// The requests to cancel are on their way: the server ends what they name, also while the lock is held.
	for waiting := 1; waiting > 0; {
		lock(`SELECT pg_stat_clear_snapshot()`) // which a transaction keeps otherwise
		const query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 IN query) > 0"
		if err := conn.QueryRow(t.Context(), query, c.Schema).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	lock(`ROLLBACK`)
	apply(t, s, "t")
	out, err := s.Read(t.Context(), "t", store.Query{Cells: []store.Range{store.All("late")}})
	if err != nil || len(out.Cells) != 0 {
		t.Errorf("got %+v, %v", out, err)
	}
}

// TestTimeout holds that the server ends a statement that waits for too long.
func TestTimeout(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.StatementTimeout = 100 * time.Millisecond
	s := open(t, c)
	apply(t, s, "t")
	conn, err := pgx.Connect(t.Context(), c.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	if _, err := conn.Exec(t.Context(), `BEGIN; SELECT FROM `+c.Schema+`.thread FOR UPDATE`, pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Apply(t.Context(), put("t", store.AnyRevision)); err == nil || !strings.Contains(err.Error(), "statement timeout") {
		t.Errorf("got %v", err)
	}
}

package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// block takes the write lock as another process would.
func block(t *testing.T, path string) (release func()) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	must(t, err)
	tx, err := db.BeginTx(context.WithoutCancel(t.Context()), nil)
	must(t, err)
	return func() {
		t.Helper()
		must(t, errors.Join(tx.Rollback(), db.Close()))
	}
}

// waiting waits until n batches wait.
func waiting(s *sqlitestore.Store, n int) {
	for s.Waiting() < n {
		runtime.Gosched()
	}
}

// TestGroup holds that batches which wait share a transaction, and that those that are refused take no others with them.
func TestGroup(t *testing.T) {
	t.Parallel()
	const writers = 60
	path := fresh(t)
	s := open(t, path)
	sole := []store.IndexKey{{Name: "u", Key: "taken", Unique: true}}
	_, err := s.Apply(t.Context(), store.Batch{Thread: "other", Put: []store.Cell{{Kind: "k", Index: sole}}})
	must(t, err)
	before := s.Commits()
	release := block(t, path)
	errs := make([]error, writers)
	var wg sync.WaitGroup
	for i := range writers {
		b := put("t", fmt.Sprintf("%02d", i), "")
		b.Put = append(b.Put, store.Cell{Kind: "k", Key: fmt.Sprint("extra", i)})
		b.Append = []store.Entry{{Log: "l"}}
		switch i % 4 {
		case 0:
			b.Base = 12345
		case 1:
			b.Put[1].Index = sole
		}
		wg.Go(func() { _, errs[i] = s.Apply(t.Context(), b) })
		waiting(s, i+1)
	}
	release()
	wg.Wait()
	for i, err := range errs {
		if want := []error{store.ErrConflict, store.ErrExists, nil, nil}[i%4]; !errors.Is(err, want) {
			t.Errorf("batch %d: got %v, want %v", i, err, want)
		}
	}
	if n := s.Commits() - before; n != 1 {
		t.Errorf("%d batches took %d transactions", writers, n)
	}
	out, err := s.Read(t.Context(), "t", store.Query{Cells: []store.Range{store.All("k")}, Entries: []store.Span{{Log: "l"}}})
	if err != nil || len(out.Cells) != writers || out.Last["l"] != writers/2 || out.Revision != writers/2+1 {
		t.Errorf("%d cells, %d entries, revision %d, %v", len(out.Cells), out.Last["l"], out.Revision, err)
	}
}

// TestGroup_bounds holds that large batches do not share a transaction without bound.
func TestGroup_bounds(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	before := s.Commits()
	release := block(t, path)
	var wg sync.WaitGroup
	for i := range 3 {
		wg.Go(func() {
			if _, err := s.Apply(t.Context(), put(fmt.Sprint("t", i), "", strings.Repeat("x", 5<<20))); err != nil {
				t.Error(err)
			}
		})
	}
	waiting(s, 3)
	release()
	wg.Wait()
	if n := s.Commits() - before; n != 3 {
		t.Errorf("three large batches took %d transactions", n)
	}
}

// TestGroup_withdrawn holds that a batch whose context is done while it waits is not applied later, and that reading does not wait.
func TestGroup_withdrawn(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	release := block(t, path)
	cause := errors.New("the caller went")
	ctx, cancel := context.WithCancelCause(t.Context())
	done := make(chan error, 2)
	for i := range cap(done) { // the first one leads, the other waits for it
		go func() {
			_, err := s.Apply(ctx, put("t", "never", ""))
			done <- err
		}()
		waiting(s, i+1)
	}
	if got := cells(t, s, "t"); len(got) != 0 {
		t.Errorf("got %+v", got)
	}
	cancel(cause)
	for range cap(done) {
		if err := <-done; !errors.Is(err, cause) {
			t.Errorf("got %v", err)
		}
	}
	release()
	_, err := s.Apply(t.Context(), put("t", "later", ""))
	must(t, err)
	if got := cells(t, s, "t"); len(got) != 1 || got[0].Key != "later" {
		t.Errorf("got %+v", got)
	}
}

// TestGroup_panic holds that a change which panics takes its transaction with it, and neither the callers of that nor the store.
func TestGroup_panic(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	bad := func() error { return s.Change(t.Context(), func(func(string) error) error { panic("bad change") }) }
	good := func(key string) func() error {
		return func() error {
			_, err := s.Apply(t.Context(), put("t", key, ""))
			return err
		}
	}
	for _, c := range []struct {
		calls []func() error
		fails int // the call that the panic takes with it, if any but the first
	}{{[]func() error{bad, good("1"), good("2")}, 0}, {[]func() error{good("lost"), bad, good("3")}, 1}} {
		release := block(t, path)
		results := make([]chan any, len(c.calls))
		for i, call := range c.calls {
			results[i] = make(chan any, 1)
			go func() {
				var err error
				defer func() { // as a server recovers
					if p := recover(); p != nil {
						results[i] <- p
						return
					}
					results[i] <- err
				}()
				err = call()
			}()
			waiting(s, i+1)
		}
		release()
		for i := range results {
			select {
			case got := <-results[i]:
				if i == 0 && got != "bad change" || i > 0 && (got != nil) != (i == c.fails) {
					t.Errorf("call %d of %d got %v", i, len(results), got)
				}
			case <-time.After(10 * time.Second):
				t.Fatalf("call %d of %d hangs", i, len(results))
			}
		}
	}
	if got := cells(t, s, "t"); len(got) != 3 || got[2].Key != "3" {
		t.Errorf("got %+v", got)
	}
}

// TestGroup_again holds that batches whose transaction another change has ended do not wait for another process past their contexts for long.
func TestGroup_again(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	release := block(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error, 2)
	for i := range cap(errs) {
		go func() {
			_, err := s.Apply(ctx, put("t", fmt.Sprint(i), ""))
			errs <- err
		}()
		waiting(s, i+1)
	}
	failed := make(chan error, 1)
	ended := errors.New("the change has ended the transaction")
	var other func()
	go func() {
		failed <- s.Change(t.Context(), func(script func(string) error) error {
			err := script("ROLLBACK")
			other = block(t, path)
			return errors.Join(ended, err)
		})
	}()
	waiting(s, 3)
	release()
	if err := <-failed; !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
	cancel()
	for range cap(errs) {
		select {
		case err := <-errs:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("a batch waits for another process after its context is done")
		}
	}
	other()
	_, err := s.Apply(t.Context(), put("t", "later", ""))
	must(t, err)
	if got := cells(t, s, "t"); len(got) != 1 || got[0].Key != "later" {
		t.Errorf("got %+v", got)
	}
}

// TestGroup_events holds that events share no transaction with a batch that needs a flush, and that all come in order.
func TestGroup_events(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	for n := uint64(1); n <= 3; n++ {
		refused, err := s.AppendEvents(t.Context(), store.EventBatch{Stream: "s", First: n, Last: n})
		if err != nil || len(refused) > 0 {
			t.Fatal(refused, err)
		}
		_, err = s.Apply(t.Context(), put("t", fmt.Sprint(n), ""))
		must(t, err)
	}
	list, err := s.ReadEvents(t.Context(), "s", 0, 10, 0)
	if err != nil || len(list) != 3 || len(cells(t, s, "t")) != 3 {
		t.Errorf("got %+v, %v", list, err)
	}
}

// TestClose holds that Close waits for batches, that it may be called again, and that calls after it fail.
func TestClose(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	release := block(t, path)
	errs := make(chan error, 5)
	for i := range 3 {
		go func() {
			_, err := s.Apply(t.Context(), put("t", fmt.Sprint(i), ""))
			errs <- err
		}()
	}
	waiting(s, 3)
	for range 2 {
		go func() { errs <- s.Close(context.Background()) }()
	}
	release()
	for range cap(errs) {
		must(t, <-errs)
	}
	must(t, s.Close(t.Context()))
	if n := len(cells(t, open(t, path), "t")); n != 3 {
		t.Errorf("%d of 3 batches are there", n)
	}
	_, apply := s.Apply(t.Context(), put("t", "4", ""))
	_, read := s.Read(t.Context(), "t", store.Query{})
	_, watch := s.Watch(t.Context(), "topic")
	_, add := s.AppendEvents(t.Context(), store.EventBatch{Stream: "s", First: 1, Last: 1})
	_, events := s.ReadEvents(t.Context(), "s", 0, 1, time.Minute)
	for what, err := range map[string]error{
		"apply": apply, "read": read, "watch": watch, "append": add, "events": events, "health": s.Health(t.Context()),
	} {
		if !errors.Is(err, sqlitestore.ErrClosed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestClose_blocked holds that Close gives up waiting for another process when its context is done.
func TestClose_blocked(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	release := block(t, path)
	defer release()
	done := make(chan error, 1)
	go func() {
		_, err := s.Apply(t.Context(), put("t", "1", ""))
		done <- err
	}()
	waiting(s, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, s.Close(ctx))
	if err := <-done; !errors.Is(err, sqlitestore.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

// TestClose_waiting holds that Close ends those who wait for events.
func TestClose_waiting(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	done := make(chan error, 1)
	go func() {
		_, err := s.ReadEvents(t.Context(), "s", 0, 1, time.Hour)
		done <- err
	}()
	must(t, s.Close(t.Context()))
	if err := <-done; !errors.Is(err, sqlitestore.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

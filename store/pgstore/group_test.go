package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// applyAtOnce applies batches while another one is under way, and returns their errors and how many calls of the server it took.
func applyAtOnce(t *testing.T, s *pgstore.Store, r *relay, list []store.Batch) (errs []error, calls int64) {
	t.Helper()
	before := r.trips.Load()
	r.hold.Lock()
	var wg sync.WaitGroup
	wg.Go(func() { apply(t, s, "first") })
	for r.trips.Load() == before {
		<-time.After(time.Millisecond)
	}
	errs = make([]error, len(list))
	for i, b := range list {
		wg.Go(func() { _, errs[i] = s.Apply(t.Context(), b) })
	}
	waiting(s, 1+len(list))
	r.hold.Unlock()
	wg.Wait()
	return errs, r.trips.Load() - before
}

// waiting waits until n batches are applied or wait.
func waiting(s *pgstore.Store, n int) {
	for s.Waiting() < n {
		<-time.After(time.Millisecond)
	}
}

// TestGroup holds that batches which wait at the same time are applied by one call, and that each has its own outcome.
func TestGroup(t *testing.T) {
	t.Parallel()
	c := config(t)
	r, address := newRelay(t, c.URL)
	c.URL = address
	s := open(t, c)
	for _, thread := range []string{"repeated", "changed", "logged", "dropped"} {
		b := put(thread, 0, store.Cell{Kind: "a", Value: []byte("old"), Index: []store.IndexKey{{Name: "u", Key: thread, Unique: true}}})
		b.ID, b.Append = "once", []store.Entry{{Log: "l"}}
		applied(t, s, b)
	}
	b := func(thread, value string) store.Batch {
		b := put(thread, store.AnyRevision, store.Cell{Kind: "a", Value: []byte(value), Index: []store.IndexKey{{Name: "u", Key: thread, Unique: true}}})
		b.ID, b.Append = "new", []store.Entry{{Log: "l"}}
		return b
	}
	list := []store.Batch{b("repeated", "twice"), b("changed", "conflict"), b("logged", "wrong entry"), b("dropped", "again"), b("none", "conflict")}
	list[0].ID, list[1].Base, list[2].Append[0].Seq, list[3].Drop, list[4].Base = "once", 1, 7, true, 1
	for i := range 20 {
		list = append(list, b(fmt.Sprint("new", i), "new"))
	}
	errs, calls := applyAtOnce(t, s, r, list)
	if calls > 4 { // the first, the others, and the one whose thread does not exist or is locked
		t.Errorf("%d calls for %d batches", calls, len(list))
	}
	for i, want := range []string{"old", "old", "old", "again", ""} {
		if conflict := errors.Is(errs[i], store.ErrConflict); conflict != (i == 1 || i == 2 || i == 4) || !conflict && errs[i] != nil {
			t.Errorf("batch of thread %s: %v", list[i].Thread, errs[i])
		}
		q := store.Query{Cells: []store.Range{store.All("a")}, Entries: []store.Span{{Log: "l", Limit: 9}}}
		out, err := s.Read(t.Context(), list[i].Thread, q)
		if value, _ := out.Cell("a", ""); err != nil || string(value) != want || len(out.Entries) > 1 {
			t.Errorf("thread %s has %q and %d entries, want %q: %v", list[i].Thread, value, len(out.Entries), want, err)
		}
	}
	for i, b := range list[5:] {
		if out, err := s.Read(t.Context(), b.Thread, store.Query{}); errs[5+i] != nil || err != nil || out.Revision == 0 {
			t.Errorf("thread %s: %v, %v", b.Thread, errs[5+i], err)
		}
	}
	if places, err := s.Scan(t.Context(), store.Scan{Index: "u", Limit: 99}); err != nil || len(places) != 24 {
		t.Errorf("%d places, %v", len(places), err)
	}
}

// TestGroup_exists holds that a unique place which is taken concerns one batch of a group.
func TestGroup_exists(t *testing.T) {
	t.Parallel()
	c := config(t)
	r, address := newRelay(t, c.URL)
	c.URL = address
	s := open(t, c)
	applied(t, s, cellBatch("holder", "a", "one", true))
	list := []store.Batch{cellBatch("taken", "a", "two", true)}
	for i := range 5 {
		list = append(list, cellBatch(fmt.Sprint("t", i), fmt.Sprint(i), "one", true))
	}
	errs, _ := applyAtOnce(t, s, r, list)
	if !errors.Is(errs[0], store.ErrExists) {
		t.Errorf("got %v", errs[0])
	}
	if err := errors.Join(errs[1:]...); err != nil {
		t.Error(err)
	}
	if valueOf(t, s, "taken", "a") != "" || valueOf(t, s, "t4", "4") != "one" {
		t.Error("the batch that was refused is there, or another one is not")
	}
}

// TestGroup_panic holds that a batch which panics takes its group with it, and neither the callers of that nor the store.
func TestGroup_panic(t *testing.T) {
	t.Parallel()
	c := config(t)
	r, address := newRelay(t, c.URL)
	c.URL = address
	s := open(t, c)
	before := r.trips.Load()
	r.hold.Lock()
	results := make(chan any, 4)
	for i := range cap(results) {
		go func() {
			var err error
			defer func() { // as a server recovers
				if p := recover(); p != nil {
					results <- p
					return
				}
				results <- err
			}()
			_, err = s.Apply(t.Context(), put(fmt.Sprint("t", i), store.AnyRevision))
		}()
		for i == 0 && r.trips.Load() == before {
			<-time.After(time.Millisecond)
		}
	}
	waiting(s, cap(results))
	repair := s.Break()
	defer repair()
	r.hold.Unlock()
	var applied, panics, lost int
	for range cap(results) {
		select {
		case got := <-results:
			switch err, _ := got.(error); {
			case got == nil:
				applied++
			case errors.Is(err, pgstore.ErrPanicked):
				lost++
			default:
				panics++
			}
		case <-time.After(10 * time.Second):
			t.Fatal("a batch hangs")
		}
	}
	if applied != 1 || panics != 1 || lost != 2 {
		t.Errorf("of four batches %d were applied, %d panicked, and %d were lost", applied, panics, lost)
	}
	repair()
	apply(t, s, "later")
}

// TestGroup_locked holds that a batch which waits for another transaction does not keep the others back.
func TestGroup_locked(t *testing.T) {
	t.Parallel()
	for name, lock := range map[string]func(*testing.T, pgstore.Config, *pgstore.Store, pgx.Tx){
		"thread": func(t *testing.T, c pgstore.Config, _ *pgstore.Store, tx pgx.Tx) {
			t.Helper()
			if _, err := tx.Exec(t.Context(), `SELECT FROM `+c.Schema+`.thread FOR UPDATE`); err != nil {
				t.Fatal(err)
			}
		},
		"place": func(t *testing.T, _ pgstore.Config, s *pgstore.Store, tx pgx.Tx) {
			t.Helper()
			applied(t, s.Within(tx), cellBatch("inside", "a", "one", true))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := config(t)
			s := open(t, c)
			apply(t, s, "t")
			tx := begun(t, c)
			lock(t, c, s, tx)
			late := make(chan error, 1)
			go func() {
				_, err := s.Apply(t.Context(), cellBatch("t", "a", "two", true))
				late <- err
			}()
			for i := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				if _, err := s.Apply(ctx, cellBatch(fmt.Sprint("other", i), fmt.Sprint(i), "one", true)); err != nil {
					t.Error(err)
				}
				cancel()
			}
			select {
			case err := <-late:
				t.Fatalf("the transaction is not over, and the batch that waits for it returned %v", err)
			default:
			}
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-late; name == "thread" && err != nil || name == "place" && !errors.Is(err, store.ErrExists) {
				t.Errorf("got %v", err)
			}
		})
	}
}

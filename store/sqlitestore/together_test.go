package sqlitestore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/outboxstore"
	"github.com/mortise-dev/mortise/store/sqlitestore/recordstore"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

// home is all that can be in one file.
type home struct {
	box      *sqlitestore.Store
	news     *outboxstore.Store
	sessions *sessionstore.Store
	records  *recordstore.Store
}

func openHome(t *testing.T, path string) (h home) {
	t.Helper()
	h.box = open(t, path)
	var errs [3]error
	h.news, errs[0] = outboxstore.New(t.Context(), h.box)
	h.sessions, errs[1] = sessionstore.New(t.Context(), h.box)
	h.records, errs[2] = recordstore.New(t.Context(), h.box, record.Config{})
	must(t, errors.Join(errs[:]...))
	return h
}

// TestTogether holds that a mailbox, an outbox, sessions and records are in one file side by side, under
// the same names, while two handles as of two processes write to all of them at once.
func TestTogether(t *testing.T) {
	t.Parallel()
	const each = 25
	dir := t.TempDir()
	path := filepath.Join(dir, "mortise.db")
	var wg sync.WaitGroup
	for n, h := range []home{openHome(t, path), openHome(t, path)} {
		thread := fmt.Sprint("t", n)
		must(t, h.records.Start(record.Start{Run: abi.RunIdentity{RunID: thread}}))
		queue := benchQueue(t, h.box)
		for _, write := range []func(i int) error{
			func(i int) error {
				_, err := queue.Enqueue(t.Context(), entry(thread, fmt.Sprintf("d%d-%d", n, i)))
				return err
			},
			func(i int) error {
				_, err := h.news.Append(t.Context(), outbox.Change{Thread: thread, Task: fmt.Sprint(i), Record: []byte("r"), Data: []byte{byte(i)}, Key: fmt.Sprint(i)})
				return err
			},
			func(i int) error { return h.sessions.Append(thread, abi.Message{ID: fmt.Sprint(i)}) },
			func(i int) error {
				_, err := h.sessions.Swap(thread, uint64(i), compaction.State{Total: i + 1}) //nolint:gosec // it counts from 0
				return errors.Join(err, h.sessions.Record(compaction.Event{Thread: thread, Attempt: i}))
			},
			func(i int) error { return h.records.Add(thread, record.Entry{Step: i}) },
		} {
			wg.Go(func() {
				for i := range each {
					if err := write(i); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	h := openHome(t, path)
	for n := range 2 {
		h.check(t, fmt.Sprint("t", n), each)
	}
	arePrivate(t, dir)
}

func (h home) check(t *testing.T, thread string, each int) {
	t.Helper()
	queued, err := h.box.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: thread, Limit: 1000})
	if err != nil || len(queued) != each {
		t.Errorf("%s: %d dispatches, %v", thread, len(queued), err)
	}
	news, err := h.news.Pending(t.Context(), thread, 0, 1000)
	if err != nil || len(news) != each {
		t.Errorf("%s: %d entries of the outbox, %v", thread, len(news), err)
	}
	var sessions session.Store = h.sessions
	log, err := sessions.Log(thread)
	if err != nil || len(log) != each || log[each-1].ID != fmt.Sprint(each-1) {
		t.Errorf("%s: %d messages, %v", thread, len(log), err)
	}
	state, _, err := sessions.Load(thread)
	events, err2 := sessions.Events(thread)
	if err := errors.Join(err, err2); err != nil || state.Total != each || len(events) != each {
		t.Errorf("%s: a state of %d, %d events, %v", thread, state.Total, len(events), err)
	}
	run, err := h.records.Load(thread)
	if err != nil || len(run.Entries) != each || run.Entries[each-1].Step != each-1 {
		t.Errorf("%s: record %+v, %v", thread, run, err)
	}
}

// arePrivate checks the files of a folder.
func arePrivate(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return // modes of files mean nothing there
	}
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		info, err := d.Info()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return err
	})
	if err != nil || files < 2 {
		t.Errorf("%d files, %v", files, err)
	}
}

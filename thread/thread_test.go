package thread_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
	"github.com/mortise-dev/mortise/thread/threadtest"
)

func TestMain(m *testing.M) {
	threadtest.CrashChild(openFile)
	goleak.VerifyTestMain(m)
}

func memory(*testing.T) (one, other store.Store) {
	s := memstore.New()
	return s, s
}

func TestThreads(t *testing.T) {
	t.Parallel()
	threadtest.TestThreads(t, memory)
}

func TestRecords(t *testing.T) {
	t.Parallel()
	threadtest.TestRecords(t, memory)
}

func TestCrash(t *testing.T) {
	t.Parallel()
	threadtest.TestCrash(t, openFile, filepath.Join(t.TempDir(), "threads.db"))
}

// The form of a message is what stores have: it does not change.
func TestMessage_form(t *testing.T) {
	t.Parallel()
	want := abi.Message{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Hi.")}}
	data, err := thread.Encode(&want)
	if err != nil {
		t.Fatal(err)
	}
	in := thread.Message{ID: "m1", Run: "r1", At: time.Unix(1, 5).UTC(), Data: data}
	entry := in.Encode()
	const form = "84a26964a26d31a372756ea27231a26174ce3b9aca05a464617461c4"
	if text := hex.EncodeToString(entry); !strings.HasPrefix(text, form) || !strings.HasSuffix(text, hex.EncodeToString(data)) {
		t.Errorf("the entry is %s", text)
	}
	out, err := thread.DecodeMessage(entry)
	if err != nil || !reflect.DeepEqual(out, in) {
		t.Errorf("read %+v (%v)", out, err)
	}
	if m, err := thread.Decode(out.Data); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("read %+v (%v)", m, err)
	}
	for _, bad := range [][]byte{nil, {0x80}, entry[:len(entry)-1], []byte(`{"id":"m"}`)} {
		if m, err := thread.DecodeMessage(bad); err == nil {
			t.Errorf("%x was read as %+v", bad, m)
		}
	}
}

// The error of what cannot be read names the thread and the part.
func TestDamaged(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	_, err := s.Apply(t.Context(), store.Batch{
		Thread: "t",
		Put:    []store.Cell{{Kind: "compaction", Value: []byte("{")}},
		Append: []store.Entry{
			{Log: thread.MessageKind, Data: []byte("{")},
			{Log: "compaction", Data: []byte("[]")},
			{Log: "decision/r", Data: []byte("noise\n{}\n")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	threads := thread.On(s)
	_, log := threads.Messages(t.Context(), "t")
	_, rev, load := threads.Load("t")
	_, events := threads.Events(t.Context(), "t")
	_, record := thread.RecordsOf(s).In(t.Context(), "t", "r")
	for want, err := range map[string]error{
		`thread "t": message 1 is damaged: `: log, `thread "t": compaction state: unexpected end`: load, `thread "t": event 1: `: events,
		`decision record of run "r": it is not a record of the format mortise.record.v1`: record,
	} {
		if err == nil || rev != 0 || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, cfg := range []thread.RecordConfig{{Keep: -1}, {RunBytes: -1}} {
		if _, err := thread.NewRecorder(t.Context(), s, cfg); err == nil || !strings.Contains(err.Error(), "must not be negative") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// Lines wait for others 200 ms at most, and the lines that begin and end a record for none.
func TestRecorder_batches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		r, err := thread.NewRecorder(t.Context(), s, thread.RecordConfig{})
		noError(t, err)
		entries := func() int {
			snapshot, err := s.Read(t.Context(), "t", store.Query{Entries: []store.Span{{Log: "decision/r"}}})
			noError(t, err)
			return int(snapshot.Last["decision/r"]) //nolint:gosec // a count
		}
		expect := func(when string, want int) {
			t.Helper()
			if n := entries(); n != want {
				t.Errorf("%s: %d entries, want %d", when, n, want)
			}
		}
		add := func() { noError(t, r.Add("r", thread.Decision{Plugin: "p", Error: strings.Repeat("x", 1000)})) }
		noError(t, r.Start(thread.RunStart{Run: abi.RunIdentity{ThreadID: "t", RunID: "r"}}))
		expect("begun", 1)
		add()
		add()
		expect("waiting", 1)
		time.Sleep(201 * time.Millisecond)
		expect("late", 2)
		for range 70 {
			add()
		}
		expect("many", 3)
		noError(t, r.End("r", thread.RunEnd{}))
		expect("ended", 5)
		record, err := thread.RecordsOf(s).Load(t.Context(), "r")
		noError(t, err)
		if len(record.Entries) != 72 || len(record.Ends) != 1 {
			t.Errorf("%d entries, %d ends", len(record.Entries), len(record.Ends))
		}
		noError(t, r.Close(t.Context()))
	})
}

// stuck is a store that does not answer.
type stuck struct{ store.Store }

func (stuck) Read(ctx context.Context, _ string, _ store.Query) (store.Snapshot, error) {
	<-ctx.Done()
	return store.Snapshot{}, ctx.Err()
}

// Each call ends although the store does not answer, those of a cell soon.
func TestThreads_stuck(t *testing.T) {
	t.Parallel()
	threads := thread.On(stuck{memstore.New()})
	message := abi.Message{ID: "m", Role: abi.RoleUser}
	for name, c := range map[string]struct {
		want time.Duration
		call func() error
	}{
		"load":     {5 * time.Second, func() error { _, _, err := threads.Load("t"); return err }},
		"ledger":   {5 * time.Second, func() error { _, err := threads.LoadLedger("t"); return err }},
		"save":     {5 * time.Second, func() error { return threads.SaveLedger("t", compaction.StoredLedger{}) }},
		"record":   {5 * time.Second, func() error { return threads.Record(compaction.Event{Thread: "t"}) }},
		"swap":     {30 * time.Second, func() error { _, err := threads.Swap("t", 0, compaction.State{}); return err }},
		"messages": {30 * time.Second, func() error { _, err := threads.Messages(example(), "t"); return err }},
		"events":   {30 * time.Second, func() error { _, err := threads.Events(example(), "t"); return err }},
		"append":   {30 * time.Second, func() error { return threads.Append(example(), "t", message) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				if err := c.call(); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != c.want {
					t.Errorf("ended after %s, want %s: %v", time.Since(start), c.want, err)
				}
			})
		})
	}
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A conversation, what its compactor must not forget, and both together.
func Example() {
	s := memstore.New()
	threads := thread.On(s)
	ctx := example()
	_, err := threads.Commit(ctx, "main", thread.Commit{
		Append: []abi.Message{{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Fix the build.")}}},
		State:  &compaction.State{Total: 1, Markers: []compaction.Marker{{ID: "c1", FromID: "m1", ToID: "m1"}}},
	})
	log, err2 := threads.Messages(ctx, "main")
	state, _, err3 := threads.Load("main")
	fmt.Println(len(log), "message,", len(state.Markers), "marker", err, err2, err3)
	// Output: 1 message, 1 marker <nil> <nil> <nil>
}

// Deleting a thread of the mailbox deletes its decision records.
func TestRecords_ofADeletedThread(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	q, err := mailbox.New(t.Context(), mailbox.Config{Store: s})
	noError(t, err)
	_, err = q.SubmitBackground(t.Context(), mailbox.Request{Thread: "t", NewRun: "r", Messages: []mailbox.Input{{Data: []byte("hello")}}})
	noError(t, err)
	r, err := thread.NewRecorder(t.Context(), s, thread.RecordConfig{})
	noError(t, err)
	noError(t, r.Start(thread.RunStart{Run: abi.RunIdentity{ThreadID: "t", RunID: "r"}}))
	noError(t, r.End("r", thread.RunEnd{}))
	noError(t, r.Close(t.Context()))
	_, err = q.Delete(t.Context(), "t")
	noError(t, err)
	if _, err := thread.RecordsOf(s).Load(t.Context(), "r"); !errors.Is(err, thread.ErrNoRecord) {
		t.Errorf("the record of a deleted thread: %v", err)
	}
}

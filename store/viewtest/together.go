package viewtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

const (
	conversation = "c"
	run          = "r"
	rounds       = 10
)

// TestTogether uses all views at the same time, in one conversation whose thread has cells of another view too, and deletes the data of
// one view after that of another.
func TestTogether(t *testing.T, open OpenFunc) {
	t.Helper()
	one, other := open(t)
	v := &views{T: t, store: one, threads: thread.On(one), runs: thread.RecordsOf(one), inbox: openInbox(t, one)}
	foreign := store.Cell{Kind: "foreign", Key: "m", Value: []byte("kept"), Index: []store.IndexKey{{Name: "foreign", Group: "g"}}}
	v.must(store.ApplySurely(t.Context(), one, store.Batch{Thread: conversation, Put: []store.Cell{foreign}}))
	v.fill()
	seen := &views{T: t, store: other, threads: thread.On(other), runs: thread.RecordsOf(other), inbox: openInbox(t, other)}
	for _, v := range []*views{v, seen} {
		v.same("all", "10 messages, state 10, 10 events, 1 starts, 10 entries, 1 ends, 10 pending, 10 tasks, kept")
	}
	v.lists()

	v.empty()
	seen.same("without the inbox", "10 messages, state 10, 10 events, 1 starts, 10 entries, 1 ends, 0 pending, 0 tasks, kept")
	v.prune()
	seen.same("without records", "10 messages, state 10, 10 events, 0 starts, 0 entries, 0 ends, 0 pending, 0 tasks, kept")
	v.fill()
	seen.same("again", "20 messages, state 20, 20 events, 1 starts, 10 entries, 1 ends, 10 pending, 10 tasks, kept")
	v.must(store.ApplySurely(t.Context(), one, store.Batch{Thread: conversation, Base: store.AnyRevision, Drop: true}))
	seen.same("without the conversation", "0 messages, state 0, 0 events, 0 starts, 0 entries, 0 ends, 0 pending, 0 tasks, ")
}

func openInbox(t *testing.T, s store.Store) *inbox.Inbox {
	t.Helper()
	o, err := inbox.New(t.Context(), inbox.Config{Store: s, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close(context.WithoutCancel(t.Context())) })
	return o
}

// views are all views of one store.
type views struct {
	*testing.T
	store   store.Store
	threads *thread.Threads
	runs    *thread.Records
	inbox   *inbox.Inbox
	// messages is how many fill wrote.
	messages int
}

func (v *views) must(_ uint64, err error) {
	v.Helper()
	if err != nil {
		v.Fatal(err)
	}
}

// fill writes with all views at once.
func (v *views) fill() {
	records, err := thread.NewRecorder(v.Context(), v.store, thread.RecordConfig{})
	v.must(0, err)
	v.must(0, records.Start(startOf(conversation, run)))
	var wg sync.WaitGroup
	for _, write := range []func(i int) error{
		func(int) error {
			v.messages++
			m := abi.Message{ID: fmt.Sprint(v.messages), Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("text")}}
			return errors.Join(v.threads.Append(v.Context(), conversation, m), v.threads.Replace(v.Context(), conversation, m))
		},
		func(int) error {
			state, rev, err := v.threads.Load(conversation)
			if err == nil {
				state.Total++
				_, err = v.threads.Swap(conversation, rev, state)
			}
			return errors.Join(err, v.threads.Record(compaction.Event{Thread: conversation}))
		},
		func(i int) error { return records.Add(run, thread.Decision{Step: i}) },
		func(i int) error {
			task := fmt.Sprint("task ", i)
			n := abi.Notice{Kind: abi.NoticeCompleted, TaskID: task}
			return errors.Join(v.inbox.Commit(v.Context(), conversation, task, []byte("begun"), nil), v.inbox.Commit(v.Context(), conversation, task, []byte("r"), &n))
		},
	} {
		wg.Go(func() {
			for i := range rounds {
				if err := write(i); err != nil {
					v.Error(err)
				}
			}
		})
	}
	wg.Wait()
	v.must(0, records.End(run, thread.RunEnd{}))
	v.must(0, records.Close(v.Context()))
}

func startOf(id, run string) thread.RunStart {
	return thread.RunStart{Run: abi.RunIdentity{ThreadID: id, RunID: run}}
}

// same checks what all views have of the conversation and of its run.
func (v *views) same(when, want string) {
	v.Helper()
	log, err := v.threads.Messages(v.Context(), conversation)
	if errors.Is(err, thread.ErrUnknown) {
		err = nil
	}
	state, _, err1 := v.threads.Load(conversation)
	events, err2 := v.threads.Events(v.Context(), conversation)
	r, err3 := v.runs.In(v.Context(), conversation, run)
	if errors.Is(err3, thread.ErrNoRecord) {
		r, err3 = &thread.Record{}, nil
	}
	pending, err4 := v.inbox.Unread(v.Context(), conversation)
	tasks, err5 := v.inbox.Records(v.Context(), conversation)
	foreign, err6 := v.store.Read(v.Context(), conversation, store.Query{Cells: []store.Range{store.One("foreign", "m")}})
	if err := errors.Join(err, err1, err2, err3, err4, err5, err6); err != nil {
		v.Fatalf("%s: %v", when, err)
	}
	value, _ := foreign.Cell("foreign", "m")
	got := fmt.Sprintf("%d messages, state %d, %d events, %d starts, %d entries, %d ends, %d pending, %d tasks, %s",
		len(log), state.Total, len(events), len(r.Starts), len(r.Entries), len(r.Ends), len(pending), len(tasks), value)
	if got != want {
		v.Errorf("%s: got %s, want %s", when, got, want)
	}
}

// lists checks that each view lists its own.
func (v *views) lists() {
	v.Helper()
	threads, err := v.threads.List(v.Context())
	runs, err1 := v.runs.List(v.Context(), 10)
	boxes, err2 := v.inbox.Threads(v.Context())
	foreign, err3 := v.store.Count(v.Context(), "foreign")
	if err := errors.Join(err, err1, err2, err3); err != nil {
		v.Fatal(err)
	}
	only := []string{conversation}
	own := slices.Equal(threads, only) && slices.Equal(boxes, only) && len(runs) == 1 && runs[0].ID == run
	if !own || !maps.Equal(foreign, map[string]int{"g": 1}) {
		v.Errorf("threads %q, runs %+v, inboxes %q, others %v", threads, runs, boxes, foreign)
	}
}

// empty removes all that the inbox has.
func (v *views) empty() {
	v.Helper()
	d, err := v.inbox.Take(v.Context(), conversation)
	v.must(0, err)
	for key := range d.All() {
		v.must(0, d.Done(v.Context(), key))
	}
	tasks, err := v.inbox.Records(v.Context(), conversation)
	v.must(0, err)
	v.must(0, v.inbox.Forget(v.Context(), conversation, slices.Collect(maps.Keys(tasks))...))
}

// prune removes the run: another one is newer.
func (v *views) prune() {
	v.Helper()
	records, err := thread.NewRecorder(v.Context(), v.store, thread.RecordConfig{})
	v.must(0, err)
	v.must(0, records.Start(startOf("", "newer")))
	v.must(0, records.Close(v.Context()))
	_, err = thread.NewRecorder(v.Context(), v.store, thread.RecordConfig{Keep: 1})
	v.must(0, err)
}

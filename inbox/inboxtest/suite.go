package inboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store"
)

// TestStore checks that an inbox keeps its contract on a store. Open opens an empty store twice, as two processes
// would; both may be the same.
func TestStore(t *testing.T, open func(t *testing.T) (one, other store.Store)) {
	t.Helper()
	for name, test := range map[string]func(*suite){
		"order":      (*suite).order,
		"ends":       (*suite).ends,
		"records":    (*suite).records,
		"threads":    (*suite).threads,
		"concurrent": (*suite).concurrent,
		"bytes":      (*suite).bytes,
		"dropped":    (*suite).dropped,
		"processes":  (*suite).processes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			test(&suite{T: t, store: other, a: start(t, one), b: start(t, other)})
		})
	}
}

// suite is a test with the inboxes of two processes.
type suite struct {
	*testing.T
	store store.Store
	a, b  *inbox.Inbox
}

func start(t *testing.T, s store.Store) *inbox.Inbox {
	t.Helper()
	o, err := inbox.New(t.Context(), inbox.Config{Store: s, Shared: true, Now: func() time.Time { return time.UnixMilli(5) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return o
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// send queues a notification, end that of the end of a task, which begins before if it is not known.
func (s *suite) send(o *inbox.Inbox, thread, text string) {
	s.Helper()
	s.must(o.Deliver(s.Context(), thread, abi.Notice{Kind: abi.NoticeCustom, TaskID: "t", EventType: "e", Payload: text}))
}

func (s *suite) end(o *inbox.Inbox, thread, task, record string) {
	s.Helper()
	s.begin(o, thread, task)
	n := abi.Notice{Kind: abi.NoticeCompleted, TaskID: task, Result: record}
	s.must(o.Commit(s.Context(), thread, task, []byte(record), &n))
}

func (s *suite) begin(o *inbox.Inbox, thread, task string) {
	s.Helper()
	records, err := o.Records(s.Context(), thread)
	s.must(err)
	if records[task] == nil {
		s.must(o.Commit(s.Context(), thread, task, []byte("begun"), nil))
	}
}

func (s *suite) take(o *inbox.Inbox, thread string) *inbox.Delivery {
	s.Helper()
	d, err := o.Take(s.Context(), thread)
	s.must(err)
	return d
}

func texts(d *inbox.Delivery) (out []string) {
	for _, n := range d.All() {
		if n.Kind == abi.NoticeCustom {
			out = append(out, fmt.Sprint(n.Payload))
		} else {
			out = append(out, fmt.Sprint(n.Result))
		}
	}
	return out
}

// expect takes what a thread has in each process, and releases it.
func (s *suite) expect(thread string, want ...string) {
	s.Helper()
	for _, o := range []*inbox.Inbox{s.a, s.b} {
		d := s.take(o, thread)
		if got := texts(d); !slices.Equal(got, want) {
			s.Fatalf("thread %s has %q, want %q", thread, got, want)
		}
		d.Release()
	}
}

// ack acknowledges those with these texts.
func (s *suite) ack(o *inbox.Inbox, thread string, which ...string) {
	s.Helper()
	d := s.take(o, thread)
	defer d.Release()
	all := texts(d)
	var keys []string
	for i, n := range d.Notifications() {
		if slices.Contains(which, all[i]) {
			keys = append(keys, n.Key)
		}
	}
	s.must(d.Done(s.Context(), keys...))
}

func (s *suite) order() {
	for i := range 5 {
		s.send(s.a, "a", fmt.Sprint(i))
		s.send(s.a, "b", "other")
	}
	s.expect("a", "0", "1", "2", "3", "4")
	var last uint64
	d := s.take(s.a, "a")
	for _, n := range d.Notifications() {
		if n.Seq <= last || !n.At.Equal(time.UnixMilli(5)) {
			s.Fatalf("number %d of %s after %d", n.Seq, n.At, last)
		}
		last = n.Seq
	}
	d.Release()
	s.ack(s.a, "a", "1", "2")
	s.expect("a", "0", "3", "4")
	s.send(s.a, "a", "5")
	s.expect("a", "0", "3", "4", "5")
}

func (s *suite) ends() {
	s.end(s.a, "a", "t", "first")
	s.end(s.a, "a", "t", "second")
	s.expect("a", "first")
	s.end(s.b, "a", "t", "third")
	s.end(s.a, "b", "t", "of another thread")
	s.expect("b", "of another thread")
	if got, err := s.b.Unread(s.Context(), "a"); err != nil || !slices.Equal(got, []string{"t"}) {
		s.Fatalf("unread ends are %q, %v", got, err)
	}
	s.ack(s.a, "a", "first")
	s.end(s.a, "a", "t", "fourth")
	s.expect("a")
	records, err := s.a.Records(s.Context(), "a")
	s.must(err)
	if string(records["t"]) != "first" {
		s.Fatalf("the record is %q", records["t"])
	}
	s.must(s.a.Forget(s.Context(), "a", "t"))
	n := abi.Notice{Kind: abi.NoticeCompleted, TaskID: "t"}
	if err := s.a.Commit(s.Context(), "a", "t", []byte("r"), &n); !errors.Is(err, inbox.ErrDropped) {
		s.Fatalf("the end of a task without a record: %v", err)
	}
	s.expect("a")
	s.end(s.a, "a", "t", "fifth")
	s.expect("a", "fifth")
}

func (s *suite) records() {
	ctx := s.Context()
	s.must(s.a.Commit(ctx, "a", "t", []byte("1"), nil))
	s.must(s.a.Commit(ctx, "a", "t", []byte("2"), nil))
	s.end(s.a, "a", "u", "3")
	records, err := s.b.Records(ctx, "a")
	if want := map[string][]byte{"t": []byte("2"), "u": []byte("3")}; err != nil || !maps.EqualFunc(records, want, bytes.Equal) {
		s.Fatalf("records are %q, %v", records, err)
	}
	s.expect("a", "3")
	s.must(s.a.Forget(ctx, "a", "t", "unknown"))
	if records, err = s.a.Records(ctx, "a"); err != nil || len(records) != 1 || string(records["u"]) != "3" {
		s.Fatalf("records are %q, %v", records, err)
	}
	if other, err := s.a.Records(ctx, "none"); err != nil || len(other) != 0 {
		s.Fatalf("a thread that does not exist has %q, %v", other, err)
	}
}

func (s *suite) threads() {
	s.send(s.a, "b", "x")
	s.must(s.a.Commit(s.Context(), "a", "t", []byte("r"), nil))
	if got, err := s.a.Threads(s.Context()); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		s.Fatalf("threads are %q, %v", got, err)
	}
	s.ack(s.a, "b", "x")
	s.must(s.a.Forget(s.Context(), "a", "t"))
	if got, err := s.a.Threads(s.Context()); err != nil || len(got) != 0 {
		s.Fatalf("threads without entries and records: %q, %v", got, err)
	}
}

func (s *suite) concurrent() {
	const writers, each = 8, 25
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				s.send(s.a, "a", fmt.Sprint(w, "/", i))
				s.end(s.b, "b", fmt.Sprint(i), "end")
			}
		})
	}
	wg.Wait()
	d := s.take(s.b, "a")
	next := map[string]int{}
	for _, text := range texts(d) {
		w, i, _ := strings.Cut(text, "/")
		if i != fmt.Sprint(next[w]) {
			s.Fatalf("number %s of writer %s came, want %d", i, w, next[w])
		}
		next[w]++
	}
	ends := s.take(s.a, "b")
	if n := len(d.Notifications()); n != writers*each || len(ends.Notifications()) != each {
		s.Fatalf("%d of %d came, and %d ends of %d tasks", n, writers*each, len(ends.Notifications()), each)
	}
}

func (s *suite) bytes() {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	thread := "thread \x00\n\"\\ \u2028 é"
	s.begin(s.a, thread, "t\n")
	n := abi.Notice{Kind: abi.NoticeCompleted, TaskID: "t\n", Result: map[string]any{"i": int64(1) << 60, "f": 1.5, "s": "\x00\n\u2028"}}
	s.must(s.a.Commit(s.Context(), thread, "t\n", all, &n))
	got := s.take(s.b, thread).Notifications()
	records, err := s.b.Records(s.Context(), thread)
	s.must(err)
	if len(got) != 1 || fmt.Sprint(got[0].Result) != fmt.Sprint(n.Result) || !bytes.Equal(records["t\n"], all) {
		s.Fatalf("came back as %+v and %q", got, records)
	}
}

// dropped threads stay gone, whatever comes for them later.
func (s *suite) dropped() {
	s.end(s.a, "a", "t", "end")
	s.send(s.a, "a", "x")
	d := s.take(s.a, "a")
	list := d.Notifications()
	_, err := store.ApplySurely(s.Context(), s.store, store.Batch{Thread: "a", Base: store.AnyRevision, Drop: true})
	s.must(err)
	s.must(s.a.Forget(s.Context(), "a", "t"))
	s.must(d.Done(s.Context(), list[0].Key, list[1].Key))
	if got, err := s.store.Read(s.Context(), "a", store.Query{}); err != nil || len(list) != 2 || got.Revision != 0 {
		s.Fatalf("the thread has revision %d again, %v", got.Revision, err)
	}
	s.expect("a")
}

// processes has two processes deliver the same notifications: keys are equal, and an acknowledgement counts for both.
func (s *suite) processes() {
	s.send(s.a, "a", "x")
	s.send(s.b, "a", "y")
	first, second := s.take(s.a, "a"), s.take(s.b, "a")
	var keys []string
	for i, n := range first.Notifications() {
		if other := second.Notifications(); len(other) != 2 || other[i].Key != n.Key {
			s.Fatalf("one process has %+v, the other %+v", n, other)
		}
		keys = append(keys, n.Key)
	}
	s.must(first.Done(s.Context(), keys...))
	s.must(second.Done(s.Context(), keys...))
	second.Release()
	s.expect("a")
	alive, err := s.a.Alive(s.Context())
	if err != nil || len(alive) != 2 || !alive[s.a.Owner()] || !alive[s.b.Owner()] || s.a.Owner() == s.b.Owner() {
		s.Fatalf("alive are %v, %v", alive, err)
	}
	if s.a.Waiting("a") != 0 || s.b.Waiting("a") != 0 {
		s.Fatalf("%d and %d wait", s.a.Waiting("a"), s.b.Waiting("a"))
	}
}

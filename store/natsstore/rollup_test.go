package natsstore_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
)

// jetstreamOf is what an operator has.
func jetstreamOf(t *testing.T, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

// streamOf is the stream of a store as an operator sees it.
func streamOf(t *testing.T, url, name string) jetstream.Stream {
	t.Helper()
	s, err := jetstreamOf(t, url).Stream(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !holds(); {
		if time.Now().After(end) {
			t.Fatal(what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func state(t *testing.T, s jetstream.Stream, subjects string) jetstream.StreamState {
	t.Helper()
	info, err := s.Info(t.Context(), jetstream.WithSubjectFilter(subjects))
	if err != nil {
		t.Fatal(err)
	}
	return info.State
}

func describe(t *testing.T, s store.Store, thread string) string {
	t.Helper()
	got, err := s.Read(t.Context(), thread, store.Query{
		Cells:   []store.Range{store.All("a"), store.All("b")},
		Entries: []store.Span{{Log: "l", Limit: 10_000}, {Log: "m", Limit: 10_000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(got)
}

func apply(t *testing.T, s store.Store, b store.Batch) uint64 {
	t.Helper()
	r, err := s.Apply(t.Context(), b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRollUp: the messages of a thread stay few, and add up to the same for a process that comes later.
func TestRollUp(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	name := newStream()
	one, other := open(t, url, name), open(t, url, name)
	operator := streamOf(t, url, name)
	data := strings.Repeat("x", 5000) // entries that are not kept in memory
	var last uint64
	for i := range 700 {
		key := fmt.Sprint(i % 7)
		b := store.Batch{Thread: "t", ID: fmt.Sprint(i), Base: store.AnyRevision, Put: []store.Cell{{
			Kind: "a", Key: key, Value: fmt.Appendf(nil, "%d %s", i, data[:100]), Index: []store.IndexKey{{Name: "u", Key: key, Unique: true}},
		}}}
		switch {
		case i%50 == 0:
			b.Append = []store.Entry{{Log: "l", Data: fmt.Append(nil, i, data)}}
		case i%10 == 0:
			b.Append = []store.Entry{{Log: "m", Data: fmt.Append(nil, i)}}
		case i == 321:
			b.Trim = []store.Trim{{Log: "m", Before: 20}, {Log: "l", Before: 3}}
		}
		s := one
		if i%100 > 90 {
			s = other
		}
		last = apply(t, s, b)
	}
	eventually(t, "the log of the thread stays long", func() bool {
		st := state(t, operator, name+".>")
		return st.Msgs < 200 && st.Bytes < 256<<10
	})
	want := describe(t, one, "t")
	again := open(t, url, name)
	if got := describe(t, other, "t"); got != want {
		t.Errorf("the other process has %.300s, want %.300s", got, want)
	}
	if got := describe(t, again, "t"); got != want {
		t.Errorf("opened again it has %.300s, want %.300s", got, want)
	}
	for _, s := range []store.Store{other, again} {
		if r := apply(t, s, store.Batch{Thread: "t", ID: "699", Base: store.AnyRevision}); r != last {
			t.Errorf("the last batch has revision %d, and %d at first", r, last)
		}
	}
	list, err := again.Scan(t.Context(), store.Scan{Index: "u", Limit: 100})
	if err != nil || len(list) != 7 {
		t.Errorf("the index has %d cells, %v", len(list), err)
	}
}

// TestDropLeavesNothing: of a dropped thread a tombstone is left, and nothing of its places and entries.
func TestDropLeavesNothing(t *testing.T) {
	t.Parallel()
	url := serve(t).ClientURL()
	name := newStream()
	s := open(t, url, name)
	operator := streamOf(t, url, name)
	value := make([]byte, 100<<10)
	taking := []store.Cell{{Kind: "a", Value: value, Index: []store.IndexKey{{Name: "u", Key: "k", Unique: true}}}}
	for i := range 20 {
		apply(t, s, store.Batch{Thread: "t", Base: store.AnyRevision, Append: []store.Entry{{Log: "l", Data: fmt.Append(nil, i)}}, Put: taking})
	}
	apply(t, s, store.Batch{Thread: "t", Base: store.AnyRevision, Drop: true})
	eventually(t, "something is left of a dropped thread", func() bool { return state(t, operator, name+".>").Msgs == 1 })
	gone := ""
	for subject := range state(t, operator, name+".>").Subjects {
		gone = subject
	}
	again := open(t, url, name)
	if snap, err := again.Read(t.Context(), "t", store.Query{}); err != nil || snap.Revision != 0 {
		t.Errorf("got %+v, %v", snap, err)
	}
	// What a process left that ended before it could purge is swept.
	left := fmt.Sprint(name, ".u.left")
	if _, err := jetstreamOf(t, url).Publish(t.Context(), left, nil); err != nil {
		t.Fatal(err)
	}
	apply(t, s, store.Batch{Thread: "v", Put: taking})
	before := state(t, operator, name+".>").Msgs
	s.Sweep()
	eventually(t, "what is left is not swept", func() bool { return state(t, operator, name+".>").Msgs == before-1 })
	if len(state(t, operator, left).Subjects) != 0 {
		t.Error("something else was swept")
	}
	// The servers delete the tombstone some day.
	if err := operator.Purge(t.Context(), jetstream.WithPurgeSubject(gone)); err != nil {
		t.Fatal(err)
	}
	for _, s := range []store.Store{s, again} {
		r, err := s.Read(t.Context(), "t", store.Query{})
		if err != nil || r.Revision != 0 {
			t.Errorf("got %+v, %v", r, err)
		}
	}
	first := apply(t, s, store.Batch{Thread: "t", Put: []store.Cell{{Kind: "a"}}})
	if r := apply(t, again, store.Batch{Thread: "t", Base: first, Put: []store.Cell{{Kind: "b"}}}); r <= first {
		t.Errorf("revision %d after %d", r, first)
	}
}

// TestSpace: the stream becomes small when most threads are dropped, while another process writes.
func TestSpace(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	const threads = 1000
	url := serve(t).ClientURL()
	name := newStream()
	one, other := open(t, url, name), open(t, url, name)
	operator := streamOf(t, url, name)
	each := func(batch func(i int) store.Batch) {
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				for i := n; i < threads; i += 8 {
					if _, err := one.Apply(t.Context(), batch(i)); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	each(func(i int) store.Batch {
		b := store.Batch{Thread: fmt.Sprint("t", i), Put: []store.Cell{{
			Kind: "a", Value: make([]byte, 4000), Index: []store.IndexKey{{Name: "u", Key: fmt.Sprint(i), Unique: true}},
		}}}
		for range 8 {
			b.Append = append(b.Append, store.Entry{Log: "l", Data: make([]byte, 500)})
		}
		return b
	})
	before := state(t, operator, name+".>").Bytes
	stop := make(chan struct{})
	var busy sync.WaitGroup
	busy.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				apply(t, other, store.Batch{Thread: "busy", Base: store.AnyRevision, Put: []store.Cell{{Kind: "a", Value: make([]byte, 500)}}})
			}
		}
	})
	each(func(i int) store.Batch {
		return store.Batch{Thread: fmt.Sprint("t", i), Base: store.AnyRevision, Drop: true}
	})
	eventually(t, "the stream stays large", func() bool { return state(t, operator, name+".>").Bytes <= before/4 })
	close(stop)
	busy.Wait()
	for pattern, most := range map[string]int{name + ".u.*": 0, name + ".e.>": 0, name + ".p.*": 0, name + ".t.*": threads + 1} {
		eventually(t, "something is left at "+pattern, func() bool { return len(state(t, operator, pattern).Subjects) <= most })
	}
}

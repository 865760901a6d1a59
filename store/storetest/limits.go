package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/store"
)

func concurrent(w *world) {
	const writers, each = 8, 12
	var wg sync.WaitGroup
	for n := range writers {
		s := []store.Store{w.one, w.other}[n%2]
		wg.Go(func() {
			for i := range each {
				_, err := store.Update(w.Context(), s, "t", store.Query{Cells: []store.Range{store.One("n", "")}}, func(snap store.Snapshot) (*store.Batch, error) {
					value, _ := snap.Cell("n", "")
					return &store.Batch{
						Put:    []store.Cell{cell("n", "", string(value)+"x")},
						Append: []store.Entry{{Log: "l", Data: fmt.Appendf(nil, "%d.%d", n, i)}},
					}, nil
				})
				if err != nil {
					w.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	s := w.read(w.other, "t", store.Query{Cells: []store.Range{store.All("n")}, Entries: []store.Span{{Log: "l", Limit: 1000}}})
	value, _ := s.Cell("n", "")
	if len(value) != writers*each || len(s.Entries) != writers*each {
		w.Errorf("%d updates and %d entries, want %d", len(value), len(s.Entries), writers*each)
	}
}

func race(w *world) {
	compete(w, store.ErrConflict, func(round int) func(n int) store.Batch {
		base := w.read(w.one, "t", store.Query{}).Revision
		return func(n int) store.Batch {
			return store.Batch{Thread: "t", ID: fmt.Sprint(round, n), Base: base, Put: []store.Cell{cell("a", "", fmt.Sprint(n))}}
		}
	})
}

func uniqueRace(w *world) {
	compete(w, store.ErrExists, func(round int) func(n int) store.Batch {
		return func(n int) store.Batch {
			return put(fmt.Sprintf("t%d.%d", round, n), 0, cell("a", "", "", only("u", fmt.Sprint(round))))
		}
	})
}

// compete has four writers apply a batch each, 20 times. One of them succeeds, and the others are refused.
func compete(w *world, refusal error, begin func(round int) func(n int) store.Batch) {
	for round := range 20 {
		batch := begin(round)
		var wins atomic.Int64
		var wg sync.WaitGroup
		for n := range 4 {
			s := []store.Store{w.one, w.other}[n%2]
			wg.Go(func() {
				_, err := s.Apply(w.Context(), batch(n))
				if err == nil {
					wins.Add(1)
				} else if !errors.Is(err, refusal) {
					w.Error(err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			w.Fatalf("%d of 4 succeeded", wins.Load())
		}
	}
}

func large(w *world) {
	data := make([]byte, 3<<20)
	x := uint32(1)
	for i := range data {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	w.apply(store.Batch{Thread: "t", Put: []store.Cell{{Kind: "a", Value: data}}, Append: []store.Entry{{Log: "l", Data: data}, {Log: "l", Data: []byte("small")}}})
	s := w.read(w.other, "t", store.Query{Cells: []store.Range{store.All("a")}, Entries: []store.Span{{Log: "l", Limit: 5}}})
	value, _ := s.Cell("a", "")
	if !bytes.Equal(value, data) || len(s.Entries) != 2 || !bytes.Equal(s.Entries[0].Data, data) {
		w.Errorf("%d bytes and %d entries came back", len(value), len(s.Entries))
	}
}

func many(w *world) {
	b := store.Batch{Thread: "t"}
	for i := range 3000 {
		b.Put = append(b.Put, cell("a", fmt.Sprintf("%05d", i), strings.Repeat("v", 50), at("i", "", fmt.Sprintf("%05d", i))))
		b.Append = append(b.Append, store.Entry{Log: "l", Data: fmt.Append(nil, i)})
	}
	w.apply(b)
	s := w.read(w.other, "t", store.Query{Cells: []store.Range{store.All("a")}, Entries: []store.Span{{Log: "l", From: 2999, Limit: 5}}})
	if len(s.Cells) != 3000 || len(s.Entries) != 2 || string(s.Entries[1].Data) != "2999" {
		w.Errorf("%d cells and entries %v", len(s.Cells), s.Entries)
	}
	w.apply(store.Batch{Thread: "t", Base: store.AnyRevision, Delete: []store.Range{store.All("a")}})
	w.equal("scan", w.scan(store.Scan{Index: "i"}), "")
}

func invalid(w *world) {
	long := strings.Repeat("x", store.MaxKey+1)
	for name, b := range map[string]store.Batch{
		"no thread":     put("", 0, cell("a", "", "")),
		"long thread":   put(long, 0, cell("a", "", "")),
		"no kind":       put("t", 0, cell("", "", "")),
		"long key":      put("t", 0, cell("a", long, "")),
		"put twice":     put("t", 0, cell("a", "k", ""), cell("a", "k", "")),
		"no index name": put("t", 0, cell("a", "k", "", at("", "", ""))),
		"index twice":   put("t", 0, cell("a", "k", "", at("i", "", ""), at("i", "g", ""))),
		"no log":        {Thread: "t", Append: []store.Entry{{}}},
		"long topic":    {Thread: "t", Notify: []string{long}},
		"large":         {Thread: "t", Put: []store.Cell{{Kind: "a", Value: make([]byte, store.MaxValue+1)}}},
	} {
		if _, err := w.one.Apply(w.Context(), b); !errors.Is(err, store.ErrInvalid) {
			w.Errorf("%s: got %v", name, err)
		}
	}
}

func cancelled(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	cancel()
	_, apply := w.one.Apply(ctx, put("t", 0, cell("a", "", "")))
	_, read := w.one.Read(ctx, "t", store.Query{})
	_, list := w.one.Scan(ctx, store.Scan{Index: "i", Limit: 1})
	for what, err := range map[string]error{"apply": apply, "read": read, "scan": list} {
		if !errors.Is(err, context.Canceled) {
			w.Errorf("%s: got %v", what, err)
		}
	}
	w.equal("cells", w.cells("t", store.All("a")), "")
}

func watch(w *world) {
	ctx, cancel := context.WithCancel(w.Context())
	var watches []<-chan struct{}
	for _, s := range []store.Store{w.one, w.other} {
		c, err := s.Watch(ctx, "topic")
		w.must(err)
		watches = append(watches, c)
	}
	for n, s := range []store.Store{w.one, w.other} {
		_, err := s.Apply(w.Context(), store.Batch{Thread: fmt.Sprint("t", n), Put: []store.Cell{cell("a", "", "")}, Notify: []string{"another", "topic"}})
		w.must(err)
		for i, c := range watches {
			select {
			case <-c:
			case <-time.After(10 * time.Second):
				w.Fatalf("watch %d received nothing of process %d", i, n)
			}
		}
	}
	cancel()
	for _, c := range watches {
		for range c { // until it is closed
		}
	}
}

func owned(w *world) {
	value := []byte("value")
	w.apply(store.Batch{Thread: "t", Put: []store.Cell{{Kind: "a", Value: value, Index: []store.IndexKey{at("i", "", "")}}}, Append: []store.Entry{{Log: "l", Data: value}}})
	value[0] = 'X'
	for range 2 {
		s := w.read(w.one, "t", store.Query{Cells: []store.Range{store.All("a")}, Entries: []store.Span{{Log: "l", Limit: 1}}})
		w.equal("value", string(s.Cells[0].Value)+string(s.Entries[0].Data), "valuevalue")
		s.Cells[0].Value[0], s.Entries[0].Data[0] = 'X', 'X'
		list, err := w.one.Scan(w.Context(), store.Scan{Index: "i", Limit: 1, Values: true})
		w.must(err)
		w.equal("value", string(list[0].Value), "value")
		list[0].Value[0] = 'X'
	}
}

package storetest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// TestEvents runs the contract of store.Events.
func TestEvents(t *testing.T, open OpenFunc) {
	t.Helper()
	cases := map[string]func(*world){}
	for name, run := range map[string]func(*eventWorld){
		"batches come back in order":   eventOrder,
		"a batch comes twice":          eventTwice,
		"a former writer is refused":   eventFence,
		"old batches go":               eventKeep,
		"a reader waits":               eventWait,
		"batches of before are purged": eventPurge,
		"a stream is dropped":          eventDrop,
	} {
		cases[name] = func(w *world) {
			one, first := w.one.(store.Events)
			other, second := w.other.(store.Events)
			if !first || !second {
				w.Fatal("the store has no events")
			}
			run(&eventWorld{T: w.T, one: one, other: other, now: time.Now().UTC().Truncate(time.Millisecond)})
		}
	}
	runCases(t, open, cases)
}

type eventWorld struct {
	*testing.T
	one, other store.Events
	now        time.Time
}

func (w *eventWorld) batch(stream string, fence, first, last uint64) store.EventBatch {
	return store.EventBatch{Stream: stream, Fence: fence, First: first, Last: last, At: w.now, Data: fmt.Appendf(nil, "%d-%d", first, last)}
}

func (w *eventWorld) add(want string, list ...store.EventBatch) {
	w.Helper()
	refused, err := w.one.AppendEvents(w.Context(), list...)
	if err != nil || strings.Join(refused, " ") != want {
		w.Fatalf("refused %q, %v, want %q", refused, err, want)
	}
}

func (w *eventWorld) want(stream string, after uint64, limit int, want string) {
	w.Helper()
	for _, s := range []store.Events{w.one, w.other} {
		end := time.Now().Add(10 * time.Second)
		for {
			list, err := s.ReadEvents(w.Context(), stream, after, limit, 20*time.Millisecond)
			if err != nil {
				w.Fatal(err)
			}
			var got []string
			for _, b := range list {
				if b.Stream != stream || !b.At.Equal(w.now) {
					w.Errorf("got %+v", b)
				}
				got = append(got, fmt.Sprintf("%d:%s", b.Fence, b.Data))
			}
			if strings.Join(got, " ") == want {
				break
			}
			if time.Now().After(end) {
				w.Fatalf("got %q, want %q", got, want)
			}
		}
	}
}

func eventOrder(w *eventWorld) {
	w.add("", w.batch("d", 1, 1, 3), w.batch("e", 1, 1, 1))
	w.add("", w.batch("d", 1, 4, 4))
	w.add("", w.batch("d", 2, 10, 12))
	w.want("d", 0, 10, "1:1-3 1:4-4 2:10-12")
	w.want("d", 2, 10, "1:1-3 1:4-4 2:10-12")
	w.want("d", 3, 1, "1:4-4")
	w.want("d", 12, 10, "")
	w.want("e", 0, 10, "1:1-1")
	w.want("none", 0, 10, "")
}

func eventTwice(w *eventWorld) {
	for range 2 {
		w.add("", w.batch("d", 1, 1, 3))
	}
	w.want("d", 0, 10, "1:1-3")
}

func eventFence(w *eventWorld) {
	w.add("", w.batch("d", 2, 10, 11))
	w.add("d", w.batch("d", 1, 12, 13), w.batch("e", 1, 1, 1))
	w.add("d", w.batch("d", 2, 9, 9))
	w.want("d", 0, 10, "2:10-11")
	w.want("e", 0, 10, "1:1-1")
}

func eventKeep(w *eventWorld) {
	for n := uint64(1); n <= 4; n++ {
		w.add("", w.batch("d", 1, n, n))
	}
	b := w.batch("d", 1, 5, 5)
	b.Keep = 4
	w.add("", b)
	w.want("d", 0, 10, "1:4-4 1:5-5")
}

func eventWait(w *eventWorld) {
	done := make(chan error, 1)
	go func() {
		list, err := w.other.ReadEvents(w.Context(), "d", 0, 10, 20*time.Second)
		if err == nil && len(list) != 1 {
			err = fmt.Errorf("%d batches", len(list))
		}
		done <- err
	}()
	start := time.Now()
	w.add("", w.batch("d", 1, 1, 1))
	if err := <-done; err != nil {
		w.Error(err)
	}
	if took := time.Since(start); took > 10*time.Second {
		w.Errorf("it took %v", took)
	}
	if list, err := w.one.ReadEvents(w.Context(), "d", 1, 10, 0); err != nil || len(list) != 0 {
		w.Errorf("got %v, %v", list, err)
	}
}

func eventPurge(w *eventWorld) {
	old := w.batch("d", 1, 1, 1)
	old.At = w.now.Add(-time.Hour)
	w.add("", old)
	w.add("", w.batch("d", 1, 2, 2))
	if err := w.one.PurgeEvents(w.Context(), w.now.Add(-time.Minute)); err != nil {
		w.Fatal(err)
	}
	w.want("d", 0, 10, "1:2-2")
	w.add("d", w.batch("d", 0, 3, 3))
}

func eventDrop(w *eventWorld) {
	w.add("", w.batch("d", 2, 1, 2), w.batch("e", 1, 1, 1))
	if err := w.one.DropEvents(w.Context(), "d", "none"); err != nil {
		w.Fatal(err)
	}
	w.want("d", 0, 10, "")
	w.want("e", 0, 10, "1:1-1")
	w.add("", w.batch("d", 1, 1, 1))
	w.want("d", 0, 10, "1:1-1")
}

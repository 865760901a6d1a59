package mailboxtest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/queue"
)

func sizeCases() []testCase {
	return []testCase{
		{"largest_request", largestRequest},
		{"largest_commit", largestCommit},
	}
}

// filled are n bytes that no store can make fewer of by their pattern alone, the same for each seed.
func filled(n int, seed byte) []byte {
	out := make([]byte, n)
	x := uint32(seed) + 1
	for i := range out {
		x = x*1664525 + 1013904223
		out[i] = byte(x >> 24)
	}
	return out
}

// Bounds of a queue that is soon at them. Those of a queue by default are for a machine that has nothing else to do.
const (
	requestBytes = 1 << 20
	commitBytes  = 2 << 20
)

// bounded gives the world a queue with these bounds.
func (w *world) bounded() {
	w.t.Helper()
	q, err := queue.New(queue.Config{Store: w.store, Now: w.clock.Now, Skew: -1, RequestBytes: requestBytes, CommitBytes: commitBytes})
	must(w.t, err)
	w.queue = q
}

// largestRequest holds that a request may be as large as the queue takes, and that a larger one is refused and leaves
// nothing behind.
func largestRequest(w *world) {
	w.bounded()
	largest := filled(requestBytes, 1)
	w.enqueue("t", "d1", func(e *queue.Entry) { e.Request = largest })
	if got := w.claim("t").Dispatch.Request; !bytes.Equal(got, largest) {
		w.t.Errorf("a request of %d bytes came back with %d", len(largest), len(got))
	}
	e := w.entry("t", "d2")
	e.Request = filled(requestBytes+1, 1)
	if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrTooLarge) || !errors.Is(err, queue.ErrInvalid) {
		w.t.Errorf("a request that is larger: %v", err)
	}
	equal(w.t, "seq", w.record("t").Seq, 1)
}

// largestCommit holds the same of what an execution writes at once, and of its result.
func largestCommit(w *world) {
	w.bounded()
	w.enqueue("t", "d1")
	k := w.claim("t")
	const piece = commitBytes / 8
	c := queue.Commit{ID: "c", Image: filled(piece, 1), Data: filled(piece, 2)}
	for i := range byte(6) {
		c.Append = append(c.Append, queue.Message{ID: fmt.Sprintf("m%d", i), Data: filled(piece, i)[:piece-2]})
	}
	larger := c
	larger.Data = append(bytes.Clone(c.Data), 0)
	if err := w.queue.Commit(w.ctx(), hold(k), larger); !errors.Is(err, queue.ErrTooLarge) {
		w.t.Errorf("a commit that is larger: %v", err)
	}
	equal(w.t, "messages of a commit that is larger", w.record("t").Messages, 0)
	must(w.t, w.queue.Commit(w.ctx(), hold(k), c))
	list, err := w.queue.Messages(w.ctx(), "t", 1, 10)
	must(w.t, err)
	equal(w.t, "messages", len(list), len(c.Append))
	for i := range list {
		equal(w.t, "message "+c.Append[i].ID, bytes.Equal(list[i].Data, c.Append[i].Data), true)
	}
	equal(w.t, "image", bytes.Equal(w.image("t"), c.Image), true)
	equal(w.t, "data of the run", bytes.Equal(w.run("run-d1").Data, c.Data), true)
	_, err = w.queue.Settle(w.ctx(), hold(k), queue.Settlement{
		Verdict: queue.Ack, Result: queue.Result{Status: queue.RunDone, Response: string(filled(commitBytes+1, 3))},
	})
	if !errors.Is(err, queue.ErrTooLarge) {
		w.t.Errorf("a result that is larger: %v", err)
	}
	w.settle(k, queue.Ack)
}

package mailboxtest

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/mailbox"
)

func sizeCases() []testCase {
	return []testCase{
		{"largest_request_and_commit", largest},
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

// Bounds of a mailbox that is soon at them. Those of one by default are for a machine that has nothing else to do.
const (
	requestBytes = 1 << 20
	commitBytes  = 2 << 20
)

// largest holds that a request, and what an execution writes at once, may be as large as the mailbox takes, and that what is larger is
// refused and leaves nothing behind.
func largest(w *world) {
	m := w.manual(func(c *mailbox.Config) { c.Limits.Request, c.Limits.Commit = requestBytes, commitBytes })
	extras := filled(requestBytes*3/4-300, 1)
	x := m.begin("t", "d1", func(r *mailbox.Request) { r.Extras = extras })
	equal(w.t, "the request came whole", bytes.Equal(x.Request.Extras, extras), true)
	r := request("t", "d2")
	r.Extras = filled(requestBytes*3/4, 1)
	if _, err := m.SubmitBackground(w.ctx(), r); !errors.Is(err, mailbox.ErrTooLarge) || !errors.Is(err, mailbox.ErrInvalid) {
		w.t.Errorf("a request that is larger: %v", err)
	}
	equal(w.t, "seq", w.record("t").Seq, 1)

	const piece = commitBytes / 8
	c := mailbox.Commit{ID: "c", Image: filled(piece, 1), Data: filled(piece, 2)}
	for i := range byte(6) {
		c.Append = append(c.Append, mailbox.Message{ID: fmt.Sprintf("m%d", i), Data: filled(piece, i)[:piece-2]})
	}
	larger := c
	larger.Data = append(bytes.Clone(c.Data), 0)
	if err := x.commit(larger); !errors.Is(err, mailbox.ErrTooLarge) {
		w.t.Errorf("a commit that is larger: %v", err)
	}
	equal(w.t, "messages of a commit that is larger", w.record("t").Messages, 0)
	must(w.t, x.commit(c))
	list, err := w.mail.Messages(w.ctx(), "t", 1, 10)
	must(w.t, err)
	equal(w.t, "messages", len(list), len(c.Append))
	for i := range list {
		equal(w.t, "message "+c.Append[i].ID, bytes.Equal(list[i].Data, c.Append[i].Data), true)
	}
	equal(w.t, "image", bytes.Equal(w.image("t"), c.Image), true)
	equal(w.t, "data of the run", bytes.Equal(w.run("run-d1").Data, c.Data), true)
	d := m.finish(x, mailbox.Result{Response: string(filled(commitBytes+1, 3))}, nil)
	equal(w.t, "status after a result that is larger", d.Status, mailbox.DeadLetter)
}

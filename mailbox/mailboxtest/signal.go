package mailboxtest

import (
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// testSignals proves the signals of a store that has them.
func testSignals(w *world) {
	signals, ok := w.store.(mailbox.Signals)
	if !ok {
		return // an optional ability
	}
	none, err := signals.Pull(w.ctx(), 10, 10*time.Millisecond)
	must(w.t, err)
	equal(w.t, "signals in an empty store", len(none), 0)
	w.enqueue("t", "d1")
	s := w.pull(signals)
	equal(w.t, "thread", s.Thread, "t")
	must(w.t, s.Receipt.Ack(w.ctx()))
	w.settle(w.claim("t"), mailbox.GiveBack)
	s = w.pull(signals)
	equal(w.t, "thread of what was given back", s.Thread, "t")
	must(w.t, s.Receipt.Ack(w.ctx()))
}

// pull waits for the next signal.
func (w *world) pull(signals mailbox.Signals) mailbox.Signal {
	w.t.Helper()
	for range 20 {
		list, err := signals.Pull(w.ctx(), 1, time.Second)
		must(w.t, err)
		if len(list) > 0 {
			return list[0]
		}
	}
	w.t.Fatal("no signal came")
	return mailbox.Signal{}
}

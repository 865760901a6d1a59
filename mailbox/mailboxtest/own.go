package mailboxtest

import (
	"errors"

	"github.com/mortise-dev/mortise/mailbox"
)

func ownCases() []testCase {
	return []testCase{{"ids_of_the_mailbox_that_a_caller_chooses", takenOwn}}
}

// takenOwn holds that no caller can have an id that the mailbox has made, in another thread.
func takenOwn(w *world) {
	m := w.box(mailbox.Config{Store: w.store, Runtime: done{}})
	victim := w.submit(m, "victim")
	for _, change := range []func(*mailbox.Request){
		func(r *mailbox.Request) { r.DispatchIDHint = victim.Dispatch }, func(r *mailbox.Request) { r.NewRun = victim.Run },
		func(r *mailbox.Request) { r.Run = victim.Run },
	} {
		r := mailbox.Request{Thread: "attacker", Messages: []mailbox.Input{{Data: []byte("x")}}}
		change(&r)
		if _, err := m.SubmitBackground(w.ctx(), r); !errors.Is(err, mailbox.ErrExists) {
			w.t.Errorf("a request with an id of another thread: %v", err)
		}
	}
	equal(w.t, "thread of the run", w.run(victim.Run).Thread, "victim")
	list, err := m.Threads(w.ctx(), mailbox.ThreadQuery{Limit: 10})
	must(w.t, err)
	equal(w.t, "threads", len(list), 1)
}

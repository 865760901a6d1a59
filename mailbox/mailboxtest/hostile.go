package mailboxtest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/mailbox"
)

func hostileCases() []testCase {
	return []testCase{
		{"texts_that_are_no_text", strangeTexts},
		{"message_ids_that_are_no_text", strangeMessages},
		{"pages_without_a_size", strangePages},
		{"key_of_another_tenant", strangersKey},
		{"run_id_that_is_taken", takenRun},
		{"ids_of_the_mailbox_that_a_caller_chooses", takenOwn},
		{"times_far_away", farTimes},
	}
}

// hostile is what a model, a tool or a broken program may say: bytes that are no UTF-8, NUL, and control characters.
const hostile = "a\x00b\xff\xfec\x1b[31m\u202e☃"

// strangeTexts holds that an execution is settled whatever it says, and that what is kept of it is text.
func strangeTexts(w *world) {
	r := mailbox.Result{Status: mailbox.RunDone, Termination: hostile, Response: hostile, Error: hostile, Wait: hostile}
	for i, verdict := range []mailbox.Verdict{mailbox.Ack, mailbox.Retry, mailbox.Bury, mailbox.Withdraw, mailbox.Supersede} {
		thread, id := fmt.Sprint("t", i), fmt.Sprint("d", i)
		w.enqueue(thread, id)
		k := w.claim(thread)
		must(w.t, w.queue.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "c", Result: mailbox.Result{Status: mailbox.RunRunning, Response: hostile, Error: hostile}}))
		_, err := w.queue.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: verdict, Error: hostile, Result: r})
		must(w.t, err)
		d := w.load(id)
		if d.Status == mailbox.Claimed {
			w.t.Errorf("%s: the dispatch is still claimed", verdict)
		}
		run := w.run("run-" + id)
		for name, text := range map[string]string{
			"error": d.LastError, "response": d.Response, "termination": d.Termination, "run error": d.RunError,
			"output": run.Output, "failure": run.Error, "end": run.Termination, "wait": run.Wait,
		} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || text != "" && !strings.HasSuffix(text, "☃") && text != mailbox.TerminationCancelled && text != mailbox.TerminationError {
				w.t.Errorf("%s: the %s is %q", verdict, name, text)
			}
		}
	}
	w.enqueue("c", "cancelled")
	_, ok, err := w.queue.Cancel(w.ctx(), "cancelled", hostile)
	must(w.t, err)
	equal(w.t, "cancelled", ok, true)
}

// strangeMessages holds that a log takes no message under an id that is no text, and nothing else of its commit.
func strangeMessages(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	for _, id := range []string{hostile, strings.Repeat("x", 300), "\x00"} {
		err := w.queue.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "c " + fmt.Sprint(len(id)), Append: []mailbox.Message{message("good", "a"), message(id, "b")}})
		if !errors.Is(err, mailbox.ErrInvalid) {
			w.t.Errorf("message %.20q: %v", id, err)
		}
	}
	equal(w.t, "length of the log", w.head("t").Messages, 0)
	must(w.t, w.queue.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "c", Append: []mailbox.Message{message("good", "a")}}))
}

// strangePages holds that a page without a size, or with a negative one, is empty in every store.
func strangePages(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), mailbox.Commit{ID: "c", Append: []mailbox.Message{message("m", "a")}}))
	w.enqueue("u", "d2")
	_, err := w.queue.Settle(w.ctx(), hold(k), mailbox.Settlement{Verdict: mailbox.Bury})
	must(w.t, err)
	for _, limit := range []int{0, -1, -1 << 40} {
		list, err := w.store.Dispatches(w.ctx(), mailbox.DispatchQuery{Limit: limit})
		must(w.t, err)
		one, err := w.store.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: "u", Limit: limit})
		must(w.t, err)
		heads, err := w.store.Threads(w.ctx(), mailbox.ThreadQuery{Limit: limit})
		must(w.t, err)
		due, _, err := w.store.Due(w.ctx(), mailbox.DueQuery{By: w.clock.Now(), Limit: limit})
		must(w.t, err)
		purged, err := w.store.Purge(w.ctx(), mailbox.PurgeQuery{Statuses: []mailbox.Status{mailbox.DeadLetter}, Before: w.clock.Now().AddDate(1, 0, 0), Limit: limit})
		must(w.t, err)
		log, err := w.store.Messages(w.ctx(), "t", 1, limit)
		must(w.t, err)
		if n := len(list) + len(one) + len(heads) + len(due) + purged + len(log); n != 0 {
			w.t.Errorf("pages of %d have %d, %d, %d, %d, %d and %d entries", limit, len(list), len(one), len(heads), len(due), purged, len(log))
		}
	}
	for _, from := range []int{0, -5} {
		log, err := w.store.Messages(w.ctx(), "t", from, 5)
		must(w.t, err)
		equal(w.t, "messages from before the first", len(log), 1)
	}
}

// strangersKey holds that an entry which is there already is told to nobody but its tenant.
func strangersKey(w *world) {
	e := w.entry("t", "d1")
	e.Tenant, e.Digest = "owner", "same"
	_, err := w.queue.Enqueue(w.ctx(), e)
	must(w.t, err)
	for _, tenant := range []string{"stranger", ""} {
		e.Tenant = tenant
		if k, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, mailbox.ErrInvalid) || k.Dispatch.ID != "" {
			w.t.Errorf("the entry of another tenant came to %+v, %v", k.Dispatch, err)
		}
	}
}

// takenRun holds that no entry takes the place of a run that there is, in its thread or another.
func takenRun(w *world) {
	_, err := w.queue.Settle(w.ctx(), hold(w.claimOf("t", "d1")), mailbox.Settlement{Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone}})
	must(w.t, err)
	for _, thread := range []string{"t", "u"} {
		e := w.entry(thread, "d2"+thread)
		e.NewRun = "run-d1"
		if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, mailbox.ErrExists) {
			w.t.Errorf("a new run of thread %s has an id that is taken: %v", thread, err)
		}
	}
	equal(w.t, "status of the run", w.run("run-d1").Status, mailbox.RunDone)
}

func (w *world) claimOf(thread, id string) mailbox.Taken {
	w.t.Helper()
	w.enqueue(thread, id)
	return w.claim(thread)
}

// farTimes holds that times which a store may not be able to keep are refused, or mean never.
func farTimes(w *world) {
	last := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	for i, at := range []time.Time{last, last.AddDate(-20000, 0, 0)} {
		id := fmt.Sprint("d", i)
		w.enqueue(id, id, func(e *mailbox.Entry) { e.AvailableAt = at })
	}
	for _, at := range []time.Time{last.Add(time.Minute), time.Unix(1<<55, 0), time.UnixMilli(math.MaxInt64)} {
		e := w.entry("t", "late")
		e.AvailableAt = at
		if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, mailbox.ErrInvalid) {
			w.t.Errorf("due at %v: %v", at, err)
		}
	}
	same(w.t, "due", w.due(), "d1")
	w.waits("w", "w1", last.AddDate(1, 0, 0))
	if until := w.run("run-w1").WaitUntil; !until.IsZero() {
		w.t.Errorf("a run waits until %v, want for ever", until)
	}
	w.clock.Add(1000 * time.Hour)
	same(w.t, "due much later", w.due(), "d1")
}

// takenOwn holds that no caller can have an id that the mailbox has made, in another thread.
func takenOwn(w *world) {
	m := w.box(mailbox.Config{Store: w.store, Runtime: done{}})
	victim := w.submit(m, "victim")
	e := w.entry("attacker", victim.Dispatch)
	if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, mailbox.ErrExists) {
		w.t.Errorf("a dispatch with the id of another one: %v", err)
	}
	for i, change := range []func(*mailbox.Entry){
		func(e *mailbox.Entry) { e.NewRun = victim.Run }, func(e *mailbox.Entry) { e.Run = victim.Run },
	} {
		e := w.entry("attacker", fmt.Sprint("d", i))
		change(&e)
		if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, mailbox.ErrExists) {
			w.t.Errorf("a run with the id of another one: %v", err)
		}
	}
	equal(w.t, "thread of the run", w.run(victim.Run).Thread, "victim")
	same(w.t, "threads", w.threads(mailbox.ThreadQuery{}), "victim")
}

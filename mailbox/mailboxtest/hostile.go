package mailboxtest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/queue"
)

func hostileCases() []testCase {
	return []testCase{
		{"texts_that_are_no_text", strangeTexts},
		{"message_ids_that_are_no_text", strangeMessages},
		{"pages_without_a_size", strangePages},
		{"key_of_another_tenant", strangersKey},
		{"run_id_that_is_taken", takenRun},
		{"times_far_away", farTimes},
	}
}

// hostile is what a model, a tool or a broken program may return: bytes that are no UTF-8, NUL, and control characters.
const hostile = "a\x00b\xff\xfec\x1b[31m\u202e☃"

// strangeTexts holds that an execution is settled whatever it returns, and that what is kept of it is text.
func strangeTexts(w *world) {
	r := queue.Result{Status: queue.RunDone, Termination: hostile, Response: hostile, Error: hostile, Wait: hostile}
	for i, verdict := range []queue.Verdict{queue.Ack, queue.Retry, queue.Bury, queue.Withdraw, queue.Supersede} {
		thread, id := fmt.Sprint("t", i), fmt.Sprint("d", i)
		w.enqueue(thread, id)
		k := w.claim(thread)
		must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c", Result: queue.Result{Status: queue.RunRunning, Response: hostile, Error: hostile}}))
		_, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: verdict, Error: hostile, Result: r})
		must(w.t, err)
		d := w.load(id)
		if d.Status == queue.Claimed {
			w.t.Errorf("%s: the dispatch is still claimed", verdict)
		}
		run := w.run("run-" + id)
		for name, text := range map[string]string{
			"error": d.LastError, "response": d.Response, "termination": d.Termination, "run error": d.RunError,
			"output": run.Output, "failure": run.Error, "end": run.Termination, "wait": run.Wait,
		} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || text != "" && !strings.HasSuffix(text, "☃") && text != queue.TerminationCancelled && text != queue.TerminationError {
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
		err := w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c " + fmt.Sprint(len(id)), Append: []queue.Message{message("good", "a"), message(id, "b")}})
		if !errors.Is(err, queue.ErrInvalid) {
			w.t.Errorf("message %.20q: %v", id, err)
		}
	}
	equal(w.t, "length of the log", w.record("t").Messages, 0)
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c", Append: []queue.Message{message("good", "a")}}))
}

// strangePages holds that a page without a size, or with a negative one, is empty in every store.
func strangePages(w *world) {
	w.enqueue("t", "d1")
	k := w.claim("t")
	must(w.t, w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: "c", Append: []queue.Message{message("m", "a")}}))
	w.enqueue("u", "d2")
	_, err := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Bury})
	must(w.t, err)
	for _, limit := range []int{0, -1, -1 << 40} {
		list, err := w.queue.Dispatches(w.ctx(), queue.DispatchQuery{Limit: limit})
		must(w.t, err)
		one, err := w.queue.Dispatches(w.ctx(), queue.DispatchQuery{Thread: "u", Limit: limit})
		must(w.t, err)
		records, err := w.queue.Threads(w.ctx(), queue.ThreadQuery{Limit: limit})
		must(w.t, err)
		due, _, err := w.queue.Due(w.ctx(), queue.DueQuery{By: w.clock.Now(), Limit: limit})
		must(w.t, err)
		purged, err := w.queue.Purge(w.ctx(), queue.PurgeQuery{Statuses: []queue.Status{queue.DeadLetter}, Before: w.clock.Now().AddDate(1, 0, 0), Limit: limit})
		must(w.t, err)
		log, err := w.queue.Messages(w.ctx(), "t", 1, limit)
		must(w.t, err)
		if n := len(list) + len(one) + len(records) + len(due) + purged + len(log); n != 0 {
			w.t.Errorf("pages of %d have %d, %d, %d, %d, %d and %d entries", limit, len(list), len(one), len(records), len(due), purged, len(log))
		}
	}
	for _, from := range []int{0, -5} {
		log, err := w.queue.Messages(w.ctx(), "t", from, 5)
		must(w.t, err)
		equal(w.t, "messages from before the first", len(log), 1)
	}
}

// strangersKey holds that an entry that exists is returned to its tenant alone.
func strangersKey(w *world) {
	e := w.entry("t", "d1")
	e.Tenant, e.Digest = "owner", "same"
	_, err := w.queue.Enqueue(w.ctx(), e)
	must(w.t, err)
	for _, tenant := range []string{"stranger", ""} {
		e.Tenant = tenant
		if k, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrInvalid) || k.Dispatch.ID != "" {
			w.t.Errorf("the entry of another tenant came to %+v, %v", k.Dispatch, err)
		}
		another := w.entry("t", "d2")
		another.Tenant = tenant
		if _, err := w.queue.Enqueue(w.ctx(), another); !errors.Is(err, queue.ErrInvalid) {
			w.t.Errorf("another tenant wrote to the thread: %v", err)
		}
	}
}

// takenRun holds that no entry replaces a run that there is, in its thread or another.
func takenRun(w *world) {
	_, err := w.queue.Settle(w.ctx(), hold(w.claimOf("t", "d1")), queue.Settlement{Verdict: queue.Ack, Result: queue.Result{Status: queue.RunDone}})
	must(w.t, err)
	for _, thread := range []string{"t", "u"} {
		e := w.entry(thread, "d2"+thread)
		e.NewRun = "run-d1"
		if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrExists) {
			w.t.Errorf("a new run of thread %s has an id that is taken: %v", thread, err)
		}
	}
	e := w.entry("u", "d3")
	e.Run = "run-d1"
	if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrExists) {
		w.t.Errorf("continued the run of another thread: %v", err)
	}
	equal(w.t, "run", w.run("run-d1").Thread+" "+string(w.run("run-d1").Status), "t done")
}

func (w *world) claimOf(thread, id string) queue.State {
	w.t.Helper()
	w.enqueue(thread, id)
	return w.claim(thread)
}

// farTimes holds that times which a store may not be able to keep are refused, or mean never.
func farTimes(w *world) {
	last := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	for i, at := range []time.Time{last, last.AddDate(-20000, 0, 0)} {
		id := fmt.Sprint("d", i)
		w.enqueue(id, id, func(e *queue.Entry) { e.AvailableAt = at })
	}
	for _, at := range []time.Time{last.Add(time.Minute), time.Unix(1<<55, 0), time.UnixMilli(math.MaxInt64)} {
		e := w.entry("t", "late")
		e.AvailableAt = at
		if _, err := w.queue.Enqueue(w.ctx(), e); !errors.Is(err, queue.ErrInvalid) {
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

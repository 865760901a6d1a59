package mailboxtest

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/mailbox"
)

// TestHostile holds what a mailbox makes of what runtimes and callers give it, whatever the store is.
func TestHostile(t *testing.T) {
	t.Parallel()
	runCases(t, inMemory, []testCase{
		{"texts_that_are_no_text", strangeTexts},
		{"message_ids_that_are_no_text", strangeMessages},
		{"pages_without_a_size", strangePages},
		{"key_of_another_tenant", strangersKey},
		{"times_far_away", farTimes},
	})
}

// hostile is what a model, a tool or a broken program may return: bytes that are no UTF-8, NUL, and control characters.
const hostile = "a\x00b\xff\xfec\x1b[31m\u202e☃"

// strangeTexts holds that an execution is settled whatever it returns, and that what is kept of it is text.
func strangeTexts(w *world) {
	m := w.manual()
	r := mailbox.Result{Status: mailbox.RunDone, Termination: hostile, Response: hostile, Error: hostile, Wait: hostile}
	for i, failure := range []error{nil, errors.New(hostile), fmt.Errorf("%w: %s", mailbox.ErrPermanent, hostile), fmt.Errorf("%w: %s", mailbox.ErrRefused, hostile)} {
		thread, id := fmt.Sprint("t", i), fmt.Sprint("d", i)
		x := m.begin(thread, id)
		must(w.t, x.commit(mailbox.Commit{ID: "c", Result: mailbox.Result{Status: mailbox.RunRunning, Response: hostile, Error: hostile}}))
		d := m.finish(x, r, failure)
		if d.Status == mailbox.Claimed {
			w.t.Errorf("%v: the dispatch is still claimed", failure)
		}
		must(w.t, m.Drop(w.ctx(), "other"))
		run := w.run("run-" + id)
		for name, text := range map[string]string{
			"error": d.LastError, "response": d.Response, "termination": d.Termination, "run error": d.RunError,
			"output": run.Response, "failure": run.Error, "end": run.Termination, "wait": run.Wait,
		} {
			if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || text != "" && !strings.HasSuffix(text, "☃") && text != mailbox.TerminationError {
				w.t.Errorf("%v: the %s is %q", failure, name, text)
			}
		}
		_, err := m.Cancel(w.ctx(), id)
		must(w.t, err)
	}
}

// strangeMessages holds that a log takes no message under an id that is no text, and nothing else of its commit.
func strangeMessages(w *world) {
	x := w.manual().begin("t", "d1")
	for _, id := range []string{hostile, strings.Repeat("x", 300), "\x00"} {
		err := x.commit(mailbox.Commit{ID: "c " + fmt.Sprint(len(id)), Append: []mailbox.Message{message("good", "a"), message(id, "b")}})
		if !errors.Is(err, mailbox.ErrInvalid) {
			w.t.Errorf("message %.20q: %v", id, err)
		}
	}
	equal(w.t, "length of the log", w.record("t").Messages, 0)
	must(w.t, x.commit(mailbox.Commit{ID: "c", Append: []mailbox.Message{message("good", "a")}}))
}

// strangePages holds that a page without a size, or with a negative one, is empty in every store.
func strangePages(w *world) {
	m := w.manual()
	x := m.begin("t", "d1")
	must(w.t, x.commit(mailbox.Commit{ID: "c", Append: []mailbox.Message{message("m", "a")}}))
	m.queue("u", "d2")
	for _, limit := range []int{0, -1, -1 << 40} {
		list, err := w.mail.Dispatches(w.ctx(), mailbox.DispatchQuery{Limit: limit})
		must(w.t, err)
		one, err := w.mail.Dispatches(w.ctx(), mailbox.DispatchQuery{Thread: "u", Limit: limit})
		must(w.t, err)
		runs, err := w.mail.Runs(w.ctx(), mailbox.RunQuery{Limit: limit})
		must(w.t, err)
		records, err := w.mail.Threads(w.ctx(), mailbox.ThreadQuery{Limit: limit})
		must(w.t, err)
		log, err := w.mail.Messages(w.ctx(), "t", 1, limit)
		must(w.t, err)
		due, err := w.mail.Due(w.ctx(), w.clock.Now(), limit)
		must(w.t, err)
		equal(w.t, fmt.Sprint("entries of pages of ", limit), len(list)+len(one)+len(runs)+len(records)+len(log)+len(due), 0)
	}
	for _, from := range []int{0, -5} {
		equal(w.t, "messages from before the first", len(w.log("t", from, 5)), 1)
	}
}

// strangersKey holds that a request that exists is returned to its tenant alone.
func strangersKey(w *world) {
	m := w.manual()
	r := mailbox.Request{Thread: "t", Tenant: "owner", Key: "k", Messages: []mailbox.Input{{Data: []byte("x")}}}
	first, err := m.SubmitBackground(w.ctx(), r)
	must(w.t, err)
	again, err := m.SubmitBackground(w.ctx(), r)
	must(w.t, err)
	equal(w.t, "the same request", again.Repeated && again.Dispatch == first.Dispatch, true)
	for _, tenant := range []string{"stranger", ""} {
		for _, key := range []string{"k", ""} {
			r.Tenant, r.Key = tenant, key
			if sub, err := m.SubmitBackground(w.ctx(), r); !errors.Is(err, mailbox.ErrInvalid) || sub.Dispatch != "" {
				w.t.Errorf("a request of another tenant came to %+v, %v", sub, err)
			}
		}
	}
	equal(w.t, "queued", w.record("t").Queued, 1)
}

// farTimes holds that times which a store may not be able to keep are refused, or mean never.
func farTimes(w *world) {
	m := w.manual()
	last := time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC)
	m.queue("never", "d0", func(r *mailbox.Request) { r.At = last })
	for _, at := range []time.Time{last.Add(time.Minute), time.Unix(1<<55, 0), time.UnixMilli(math.MaxInt64)} {
		r := request("t", "late")
		r.At = at
		if _, err := m.SubmitBackground(w.ctx(), r); !errors.Is(err, mailbox.ErrInvalid) {
			w.t.Errorf("due at %v: %v", at, err)
		}
	}
	x := m.begin("w", "w1", func(r *mailbox.Request) { r.At = last.AddDate(-20000, 0, 0) })
	m.finish(x, mailbox.Result{Status: mailbox.RunWaiting, Wait: modelWaits, WaitUntil: last.AddDate(1, 0, 0)}, nil)
	if until := w.run("run-w1").WaitUntil; !until.IsZero() {
		w.t.Errorf("a run waits until %v, want for ever", until)
	}
	w.clock.Add(1000 * time.Hour)
	equal(w.t, "executions that begin much later", len(m.poll()), 0)
	equal(w.t, "run", w.run("run-w1").Status, mailbox.RunWaiting)
}

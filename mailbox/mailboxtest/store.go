package mailboxtest

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func storeCases() []testCase {
	return []testCase{
		{"every_field_comes_back", everyField},
		{"decide_may_refuse", decideRefuses},
		{"change_without_a_head_writes_nothing", emptyChange},
		{"empty_thread", emptyThread},
		{"request_is_written_once", requestOnce},
		{"dedupe_key_is_kept_by_the_store", dedupeByStore},
		{"strange_names", strangeNames},
		{"cancelled_context", cancelledContext},
	}
}

// change returns a decide that writes what it is given.
func change(c mailbox.Change) func(mailbox.State) (mailbox.Change, error) {
	return func(mailbox.State) (mailbox.Change, error) { return c, nil }
}

func everyField(w *world) {
	at := func(ms int) time.Time { return w.clock.Now().Add(time.Duration(ms) * time.Millisecond) }
	d := mailbox.Dispatch{
		ID: "d1", Thread: "t", RunID: "r1", Seq: 7, Priority: 3, Epoch: 2, Dedupe: "k", Origin: "user", Status: mailbox.Claimed,
		AvailableAt: at(1), Attempts: 2, MaxAttempts: 9, LastError: "e", Holding: true, Token: "tok", Fence: 5, Owner: "o", End: mailbox.EndExpired,
		Instance: "i", RunStatus: mailbox.RunWaiting, Termination: "term", Response: "resp", RunError: "re",
		CreatedAt: at(2), UpdatedAt: at(3), CompletedAt: at(4), Request: []byte("req"), Digest: "dig", Own: true,
	}
	r := mailbox.Run{
		ID: "r1", Thread: "t", Agent: "a", Parent: "p", Status: mailbox.RunWaiting, Termination: "term", Wait: "w", WaitUntil: at(5), Output: "out", Error: "err",
		Dispatch: "d1", Session: "s", Input: []string{"m1", "m2"}, Data: []byte("data"), Own: true, CreatedAt: at(6), StartedAt: at(7), FinishedAt: at(8), UpdatedAt: at(9),
	}
	h := mailbox.Head{
		Thread: "t", Tenant: "ten", Epoch: 2, Fence: 5, Seq: 7, Queued: 0, Messages: 0, Claim: &mailbox.Claim{Dispatch: "d1", Token: "tok", Fence: 5, Owner: "o", Until: at(10), Stop: "st"},
		Latest: r.Ref(), Open: mailbox.RunRef{ID: "r0", Agent: "b", Status: mailbox.RunRunning, Wait: "x", WaitUntil: at(11)}, Commit: "c", Interrupt: "in", ReservedUntil: at(14),
		DueAt: at(12), Rank: -77, UpdatedAt: at(13),
	}
	must(w.t, w.store.Update(w.ctx(), "t", mailbox.Need{}, change(mailbox.Change{Head: &h, Dispatches: []mailbox.Dispatch{d}, Runs: []mailbox.Run{r}})))
	s, err := w.store.Load(w.ctx(), "t", mailbox.Need{Dispatches: []string{"d1"}, Runs: []string{"r1"}, Requests: true})
	must(w.t, err)
	for name, pair := range map[string][2]any{"head": {s.Head, h}, "dispatch": {s.Dispatches["d1"], d}, "run": {s.Runs["r1"], r}} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			w.t.Errorf("%s came back as\n%+v, want\n%+v", name, pair[0], pair[1])
		}
		if hasZero(pair[1]) && name != "head" {
			w.t.Errorf("the case forgets a field of %s", name)
		}
	}
	heads, err := w.store.Threads(w.ctx(), mailbox.ThreadQuery{Limit: 1})
	must(w.t, err)
	if !reflect.DeepEqual(heads, []mailbox.Head{h}) {
		w.t.Errorf("listed as %+v, want %+v", heads, h)
	}
}

// hasZero says whether a field of a struct was left out.
func hasZero(v any) bool {
	for _, field := range reflect.ValueOf(v).Fields() {
		if field.IsZero() {
			return true
		}
	}
	return false
}

func decideRefuses(w *world) {
	refused := errors.New("refused")
	h := mailbox.Head{Thread: "t", Epoch: 9}
	err := w.store.Update(w.ctx(), "t", mailbox.Need{}, func(mailbox.State) (mailbox.Change, error) {
		return mailbox.Change{Head: &h}, refused
	})
	if !errors.Is(err, refused) {
		w.t.Errorf("the error of decide came back as %v", err)
	}
	equal(w.t, "epoch", w.head("t").Epoch, 0)
}

func emptyChange(w *world) {
	d := mailbox.Dispatch{ID: "d1", Thread: "t", Status: mailbox.Queued}
	must(w.t, w.store.Update(w.ctx(), "t", mailbox.Need{}, change(mailbox.Change{Dispatches: []mailbox.Dispatch{d}})))
	same(w.t, "list", w.list(mailbox.DispatchQuery{}))
	same(w.t, "threads", w.threads(mailbox.ThreadQuery{}))
}

func emptyThread(w *world) {
	s, err := w.store.Load(w.ctx(), "t", mailbox.Need{
		Dispatches: []string{"d"}, Claimed: true, Dedupe: "k", Next: true, Now: w.clock.Now(), Queued: true, Requests: true, Runs: []string{"r"}, RunsOf: true, Image: true,
	})
	must(w.t, err)
	if s.Head != (mailbox.Head{Thread: "t"}) {
		w.t.Errorf("head of an empty thread: %+v", s.Head)
	}
	equal(w.t, "what is in it", len(s.Dispatches)+len(s.Runs)+len(s.Queued)+len(s.Image)+len(s.Next)+len(s.Holder)+len(s.Duplicate), 0)
}

func requestOnce(w *world) {
	w.enqueue("t", "d1")
	must(w.t, w.store.Update(w.ctx(), "t", mailbox.Need{Dispatches: []string{"d1"}}, func(s mailbox.State) (mailbox.Change, error) {
		d := s.Dispatches["d1"]
		equal(w.t, "request that nobody asked for", len(d.Request), 0)
		d.Request, d.LastError = []byte("another"), "changed"
		return mailbox.Change{Head: &s.Head, Dispatches: []mailbox.Dispatch{d}}, nil
	}))
	s, err := w.store.Load(w.ctx(), "t", mailbox.Need{Dispatches: []string{"d1"}, Requests: true})
	must(w.t, err)
	equal(w.t, "request", string(s.Dispatches["d1"].Request), "request d1")
	equal(w.t, "the rest", s.Dispatches["d1"].LastError, "changed")
}

func dedupeByStore(w *world) {
	w.enqueue("t", "d1", func(e *mailbox.Entry) { e.Dedupe = "k" })
	err := w.store.Update(w.ctx(), "t", mailbox.Need{}, func(s mailbox.State) (mailbox.Change, error) {
		s.Head.Epoch = 9
		d := mailbox.Dispatch{ID: "d2", Thread: "t", Seq: 2, Status: mailbox.Queued, Dedupe: "k"}
		return mailbox.Change{Head: &s.Head, Dispatches: []mailbox.Dispatch{d}}, nil
	})
	if !errors.Is(err, mailbox.ErrExists) {
		w.t.Errorf("two live dispatches with one key: %v", err)
	}
	equal(w.t, "epoch", w.head("t").Epoch, 0)
}

func strangeNames(w *world) {
	names := []string{
		"a.b", "a*", ">", "a b", "a/b", "ä☃", "'; DROP TABLE dispatch; --", "%", "_", "A", "a", ".", "..", "tab\tnewline\n", strings.Repeat("x", 256),
	}
	for _, name := range names {
		k := w.enqueue(name, "d:"+name[:min(len(name), 200)])
		equal(w.t, "thread", k.Thread, name)
	}
	equal(w.t, "threads", len(w.threads(mailbox.ThreadQuery{})), len(names))
	for _, name := range names {
		w.settle(w.claim(name), mailbox.Ack)
		w.idle(name)
	}
}

func cancelledContext(w *world) {
	ctx, cancel := context.WithCancel(w.ctx())
	cancel()
	if err := w.store.Update(ctx, "t", mailbox.Need{}, change(mailbox.Change{Head: &mailbox.Head{Thread: "t", Epoch: 1}})); !errors.Is(err, context.Canceled) {
		w.t.Errorf("update with a context that is over: %v", err)
	}
	if _, err := w.store.Load(ctx, "t", mailbox.Need{}); !errors.Is(err, context.Canceled) {
		w.t.Errorf("load with a context that is over: %v", err)
	}
	equal(w.t, "epoch", w.head("t").Epoch, 0)
}

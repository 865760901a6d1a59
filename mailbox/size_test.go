package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"request_that_is_too_large_changes_nothing": largeRequest,
		"result_that_is_too_large_ends_the_run":     largeResult,
		"commit_that_is_too_large_ends_the_run":     largeCommit,
		"events_are_bounded_by_their_bytes":         largeEvents,
		"event_that_is_too_large_is_skipped":        largeEvent,
	})
}

func tooLarge(t *testing.T, what string, err error, field string) {
	t.Helper()
	if !errors.Is(err, mailbox.ErrTooLarge) || !strings.Contains(err.Error(), field) {
		t.Errorf("%s: %v", what, err)
	}
}

// largeRequest: what is too large is refused, in whatever way it comes, before anything yields to it.
func largeRequest(t *testing.T) {
	received := 0
	s := &script{do: untilStopped, steer: func(string, mailbox.Request) bool { received++; return true }}
	w := &witness{}
	m := started(t, mailbox.Config{Runtime: s, Limits: mailbox.Limits{Request: 1000}, Observers: []mailbox.Observer{w}})
	first := background(t, m, request("t", strings.Repeat("x", 600)))
	sleep(0)
	for _, size := range []int{800, 2000} { // 800 bytes are more than 1000 when they are encoded
		large := request("t", strings.Repeat("x", size))
		_, err := m.Submit(t.Context(), large)
		tooLarge(t, "submit", err, "Limits.Request")
		_, err = m.SubmitBackground(t.Context(), large)
		tooLarge(t, "in the background", err, "Limits.Request")
		_, err = m.SubmitLive(t.Context(), large, first.Run)
		tooLarge(t, "live", err, "Limits.Request")
		_, err = m.Decide(t.Context(), first.Run, mailbox.Decision{Call: "c", Data: make([]byte, size)})
		tooLarge(t, "a decision", err, "Limits.Request")
	}
	wantStatus(t, m, first.Dispatch, mailbox.Claimed)
	h := record(t, m, "t")
	equal(t, "dispatches", h.Seq, 1)
	equal(t, "interrupts", h.Epoch, 0)
	equal(t, "commands", received, 0)
	_, err := m.Enqueue(t.Context(), mailbox.Entry{ID: "d", Request: mailbox.Request{Thread: "t", NewRun: "r"}, Payload: make([]byte, 1001)})
	tooLarge(t, "an entry", err, "Limits.Request")
	equal(t, "refused entries", w.count("enqueue error"), 1)
}

// largeResult: a run whose result is too large to be kept is a dead letter with the reason, and is not tried again.
func largeResult(t *testing.T) {
	s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
		return mailbox.Result{Termination: "natural", Response: strings.Repeat("x", 1001)}, nil
	}}
	m := started(t, mailbox.Config{Runtime: s, Limits: mailbox.Limits{Commit: 1000}})
	sub := background(t, m, request("t", "x"))
	sleep(time.Minute)
	d := wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter)
	if !strings.Contains(d.LastError, "Limits.Commit") {
		t.Errorf("last error is %q", d.LastError)
	}
	equal(t, "executions", len(s.jobs), 1)
	wantRun(t, m, sub.Run, mailbox.RunDone, mailbox.TerminationError)
}

func largeCommit(t *testing.T) {
	s := &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
		c := mailbox.Commit{ID: "c", From: j.Messages, Append: []mailbox.Message{{ID: "m", Data: make([]byte, 600)}}, Data: make([]byte, 400)}
		return mailbox.Result{}, j.Commit(ctx, c)
	}}
	w := &witness{}
	m := started(t, mailbox.Config{Runtime: s, Limits: mailbox.Limits{Commit: 1000}, Observers: []mailbox.Observer{w}})
	sub := background(t, m, request("t", "x"))
	sleep(time.Minute)
	if d := wantStatus(t, m, sub.Dispatch, mailbox.DeadLetter); !strings.Contains(d.LastError, "Limits.Commit") {
		t.Errorf("last error is %q", d.LastError)
	}
	equal(t, "executions", len(s.jobs), 1)
	equal(t, "refused commits", w.count("commit error"), 1)
	equal(t, "messages", record(t, m, "t").Messages, 0)
}

// kept reads what is kept of a dispatch that has ended: how many events, with how many bytes, from which number on.
func kept(t *testing.T, s *mailbox.Feed) (n, bytes int, first uint64) {
	t.Helper()
	var gap *mailbox.GapError
	for seq := uint64(0); ; {
		e, err := s.Next(t.Context(), seq)
		if n == 0 && errors.As(err, &gap) {
			seq = gap.Next
			continue
		}
		if errors.Is(err, mailbox.ErrEnd) {
			return n, bytes, first
		}
		must(t, err)
		if n > 0 && e.Seq != seq+1 {
			t.Errorf("event %d comes after %d", e.Seq, seq)
		}
		if n == 0 {
			first = e.Seq
		}
		n, bytes, seq = n+1, bytes+len(e.Type)+len(e.Data), e.Seq
	}
}

func emits(n, size int) *script {
	return &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		for range n {
			j.Emit("e", make([]byte, size))
		}
		return mailbox.Result{}, nil
	}}
}

func largeEvents(t *testing.T) {
	m := started(t, mailbox.Config{Runtime: emits(1024, 64<<10), Store: plain{memstore.New()}})
	sub := background(t, m, request("t", "x"))
	sleep(time.Second)
	n, bytes, first := kept(t, sub.Events)
	if bytes > (4<<20) || bytes < (4<<20)-(128<<10) {
		t.Errorf("%d events of %d bytes are kept, and %d bytes may be", n, bytes, (4 << 20))
	}
	equal(t, "the first one", first, uint64(1024+1-n+1)) //nolint:gosec // few
}

func largeEvent(t *testing.T) {
	m := started(t, mailbox.Config{Runtime: emits(1, 1000), Events: mailbox.Events{Bytes: 500}, Store: plain{memstore.New()}})
	sub := background(t, m, request("t", "x"))
	sleep(time.Second)
	if got := fmt.Sprint(events(t, sub.Events)); got != "[1:mailbox_skipped:e 2:mailbox_settled:acked]" {
		t.Errorf("events %s", got)
	}
}

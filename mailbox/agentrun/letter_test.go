package agentrun_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestDeadLetterIsReplayed holds that a dead letter which is replayed is executed, whatever its thread did before and since.
func TestDeadLetterIsReplayed(t *testing.T) {
	t.Parallel()
	for name, newer := range map[string]bool{"at_once": false, "after_newer_work": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { replayed(t, newer) })
		})
	}
}

func replayed(t *testing.T, newer bool) {
	t.Helper()
	store := memstore.New()
	var broken atomic.Bool
	model := &counter{rounds: 1, fail: func(int) error {
		if broken.Load() {
			return &llm.Error{Kind: llm.KindUnauthorized}
		}
		return nil
	}}
	p := newProcess(t, store, "a", model, &tools{})
	broken.Store(true)
	letter := p.submit(t, request(t, "t", user("one")))
	if d := p.await(t, letter); d.Status != mailbox.DeadLetter {
		t.Fatalf("the first is %q", d.Status)
	}
	for range 2 { // it fails again
		broken.Store(false)
		if newer {
			p.await(t, p.submit(t, request(t, "t", user("two"))))
		}
		broken.Store(true)
		sub, err := p.box.Replay(t.Context(), letter.Dispatch)
		must(t, err)
		if d := p.await(t, sub); d.Status != mailbox.DeadLetter {
			t.Fatalf("replayed: %q, %q", d.Status, d.Termination)
		}
	}
	broken.Store(false)
	before := len(model.seen)
	sub, err := p.box.Replay(t.Context(), letter.Dispatch)
	must(t, err)
	d := p.await(t, sub)
	if d.Status != mailbox.Acked || d.Termination == agentrun.Duplicate || d.Response != "counted to 1" {
		t.Errorf("replayed: %q, %q, %q", d.Status, d.Termination, d.Response)
	}
	if len(model.seen) != before+2 {
		t.Errorf("the model was asked %d times, want 2", len(model.seen)-before)
	} else if asked := model.seen[before]; asked[len(asked)-1] != "user: one" {
		t.Errorf("the model was asked %q", asked)
	}
	text := strings.Join(log(t, store, "t"), "\n")
	if !strings.HasSuffix(text, "user: one\nassistant: \ntool: ok\nassistant: counted to 1") {
		t.Errorf("the log is\n%s", text)
	}
}

// TestOvertakenRetry holds that a request is executed which failed, and which a more urgent one has overtaken since, as often as that comes.
func TestOvertakenRetry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		const fails = 3
		p := &process{}
		model := &counter{}
		model.fail = func(int) error {
			asked := model.seen[len(model.seen)-1]
			if len(model.seen) <= 2*fails && asked[len(asked)-1] == "user: one" {
				r := request(t, "t", user("urgent"))
				r.Priority = -10
				if _, err := p.box.SubmitBackground(context.Background(), r); err != nil {
					t.Error(err)
				}
				return errors.New("try again")
			}
			return nil
		}
		p = newProcess(t, store, "a", model, &tools{})
		d := p.await(t, p.submit(t, request(t, "t", user("one"))))
		if d.Status != mailbox.Acked || d.Termination == agentrun.Duplicate || d.Attempts != fails || d.Response != "counted to 0" {
			t.Errorf("the request that was overtaken: %q, %q, %q, %q after %d attempts that failed; asked %q", d.Status, d.Termination, d.Response, d.LastError, d.Attempts, model.seen)
		}
	})
}

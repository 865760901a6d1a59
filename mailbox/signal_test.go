package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

// signalling is a store that may fail, with signals that do not.
type signalling struct {
	*mailboxtest.Faulty
	mailbox.Signals
}

// deaf hides what is due, so that only signals lead to a claim.
type deaf struct {
	store.Store
	mailbox.Signals
}

func (deaf) Due(context.Context, mailbox.DueQuery) ([]mailbox.Thread, time.Time, error) {
	return nil, time.Time{}, nil
}

func TestSignalLoop(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"dispatch_signal_loop_claims_and_executes_queued_dispatch":                        signalClaims,
		"dispatch_signal_loop_nacks_and_redelivers_after_claim_error":                     signalError,
		"dispatch_signal_loop_nacks_when_signal_is_blocked_by_active_claim":               signalBlocked,
		"dispatch_signal_busy_ack_still_runs_queued_dispatch_after_current_finishes":      signalBusy,
		"signal_of_a_dispatch_that_is_not_due_is_acknowledged_and_the_due_index_knows_it": signalEarly,
	})
}

func signalClaims(t *testing.T) {
	store := memstore.New()
	w, s := &witness{}, &script{}
	m := started(t, mailbox.Config{Runtime: s, Store: deaf{store, store}, Observers: []mailbox.Observer{w}})
	other := open(t, mailbox.Config{Runtime: &script{}, Store: store})
	sub := queued(t, other, request("t", "x"))
	sleep(0)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	equal(t, "acknowledged", w.heard(mailbox.SignalAcked), 1)
	equal(t, "refused", w.heard(mailbox.SignalNacked)+w.heard(mailbox.SignalDelayed), 0)
	equal(t, "acknowledgements that went well", w.count("signal_ack ok"), 1)
}

func signalError(t *testing.T) {
	store := memstore.New()
	var off switched
	w, s := &witness{}, &script{}
	faulty := &mailboxtest.Faulty{Store: deaf{store, store}, Plan: off.plan}
	m := started(t, mailbox.Config{Runtime: s, Store: signalling{faulty, store}, Observers: []mailbox.Observer{w}})
	other := open(t, mailbox.Config{Runtime: &script{}, Store: store})
	off.fail("update", mailbox.DefaultTries)
	sub := queued(t, other, request("t", "x"))
	sleep(0)
	wantStatus(t, m, sub.Dispatch, mailbox.Queued)
	sleep(mailbox.DefaultNackDelay)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	equal(t, "refused", w.heard(mailbox.SignalNacked), 1)
	equal(t, "acknowledged", w.heard(mailbox.SignalAcked), 1)
	equal(t, "came again", w.heard(mailbox.SignalRedelivered), 1)
	equal(t, "claims that failed", w.count("claim error"), 1)
}

func signalBlocked(t *testing.T) {
	store := memstore.New()
	w, s := &witness{}, &script{}
	m := started(t, mailbox.Config{Runtime: s, Store: deaf{store, store}, Observers: []mailbox.Observer{w}})
	other := open(t, mailbox.Config{Runtime: &script{}, Store: plain{store}})
	claim := mailbox.ClaimRequest{Token: "other", Owner: "other", Lease: time.Hour}
	taken, err := other.Queue().Enqueue(t.Context(), mailbox.Entry{ID: "held", Thread: "t", NewRun: "r", Claim: &claim, Request: []byte("{}")})
	must(t, err)
	sub := queued(t, other, request("t", "x"))
	sleep(10 * time.Second)
	wantStatus(t, m, sub.Dispatch, mailbox.Queued)
	if n := w.heard(mailbox.SignalDelayed); n < 1 || n > 6 {
		t.Errorf("delayed %d times in 10 s", n)
	}
	hold := mailbox.Hold{Thread: "t", Dispatch: "held", Token: taken.Claim.Token}
	_, err = other.Queue().Settle(t.Context(), hold, mailbox.Settlement{Verdict: mailbox.Ack})
	must(t, err)
	sleep(time.Minute)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	s.wantRan(t, "x")
	// The settlement rings for the thread, whose signal is the one that was refused: both are one.
	equal(t, "acknowledged", w.heard(mailbox.SignalAcked), 1)
	left, err := store.Pull(t.Context(), 10, time.Hour)
	must(t, err)
	equal(t, "signals left", len(left), 0)
}

func signalBusy(t *testing.T) {
	store := memstore.New()
	release := make(chan struct{})
	w := &witness{}
	s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
		<-release
		return mailbox.Result{}, nil
	}}
	m := started(t, mailbox.Config{Runtime: s, Store: deaf{store, store}, Observers: []mailbox.Observer{w}})
	background(t, m, request("t", "first"))
	second := background(t, m, request("t", "second"))
	sleep(time.Second)
	wantStatus(t, m, second.Dispatch, mailbox.Queued)
	equal(t, "refused", w.heard(mailbox.SignalNacked)+w.heard(mailbox.SignalDelayed), 0)
	close(release)
	sleep(time.Second)
	s.wantRan(t, "first", "second")
	wantStatus(t, m, second.Dispatch, mailbox.Acked)
}

func signalEarly(t *testing.T) {
	store := memstore.New()
	w, s := &witness{}, &script{}
	m := started(t, mailbox.Config{Runtime: s, Store: store, Observers: []mailbox.Observer{w}})
	r := request("t", "x")
	r.At = time.Now().Add(time.Hour)
	sub := background(t, m, r)
	sleep(time.Second)
	equal(t, "acknowledged", w.heard(mailbox.SignalAcked), 1)
	sleep(time.Hour)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
}

package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// notified is a store whose due index is not polled by the clock: only notifications lead to a claim.
func notified(s store.Store, r *script, w *witness) mailbox.Config {
	return mailbox.Config{Runtime: r, Store: s, Poll: time.Hour, Observers: []mailbox.Observer{w}}
}

func TestSignalLoop(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"dispatch_signal_loop_claims_and_executes_queued_dispatch":                   notificationClaims,
		"dispatch_signal_loop_nacks_and_redelivers_after_claim_error":                notificationError,
		"dispatch_signal_loop_nacks_when_signal_is_blocked_by_active_claim":          notificationBlocked,
		"dispatch_signal_busy_ack_still_runs_queued_dispatch_after_current_finishes": notificationBusy,
		"notification_of_a_dispatch_that_is_not_due":                                 notificationEarly,
		"notifications_are_watched_again_after_a_failure":                            watchFails,
	})
}

func notificationClaims(t *testing.T) {
	mem := memstore.New()
	w, s := &witness{}, &script{}
	m := started(t, notified(mem, s, w))
	other := open(t, mailbox.Config{Runtime: &script{}, Store: mem})
	sub := queued(t, other, request("t", "x"))
	sleep(0)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	equal(t, "claims", w.count("claim ok"), 1)
}

func notificationError(t *testing.T) {
	mem := memstore.New()
	var off switched
	w, s := &witness{}, &script{}
	m := started(t, notified(&mailboxtest.Faulty{Store: mem, Plan: off.plan}, s, w))
	other := open(t, mailbox.Config{Runtime: &script{}, Store: mem})
	off.fail("read", 1)
	sub := queued(t, other, request("t", "x"))
	sleep(0)
	wantStatus(t, other, sub.Dispatch, mailbox.Queued)
	sleep(500 * time.Millisecond)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	equal(t, "claims that failed", w.count("claim error"), 1)
	equal(t, "threads set aside", w.count("set_aside error"), 1)
}

func notificationBlocked(t *testing.T) {
	mem := memstore.New()
	w, s := &witness{}, &script{}
	m := started(t, notified(mem, s, w))
	other := open(t, mailbox.Config{Runtime: &script{}, Store: mem})
	claim := mailbox.ClaimRequest{Token: "other", Owner: "other", Lease: time.Hour}
	held, err := other.Enqueue(t.Context(), mailbox.Entry{ID: "held", Request: mailbox.Request{Thread: "t", NewRun: "r"}, Claim: &claim, Payload: []byte("{}")})
	must(t, err)
	sub := queued(t, other, request("t", "x"))
	sleep(10 * time.Second)
	wantStatus(t, m, sub.Dispatch, mailbox.Queued)
	equal(t, "claims that found nothing", w.count("claim empty"), 0)
	_, err = other.Settle(t.Context(), held.Hold(), mailbox.Settlement{Verdict: mailbox.Ack})
	must(t, err)
	sleep(0)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
	s.wantRan(t, "x")
}

func notificationBusy(t *testing.T) {
	release := make(chan struct{})
	w := &witness{}
	s := &script{do: func(context.Context, *mailbox.Job) (mailbox.Result, error) {
		<-release
		return mailbox.Result{}, nil
	}}
	m := started(t, notified(memstore.New(), s, w))
	background(t, m, request("t", "first"))
	second := background(t, m, request("t", "second"))
	sleep(time.Second)
	wantStatus(t, m, second.Dispatch, mailbox.Queued)
	close(release)
	sleep(0)
	s.wantRan(t, "first", "second")
	wantStatus(t, m, second.Dispatch, mailbox.Acked)
}

func notificationEarly(t *testing.T) {
	w, s := &witness{}, &script{}
	m := started(t, notified(memstore.New(), s, w))
	r := request("t", "x")
	r.At = time.Now().Add(30 * time.Minute)
	sub := background(t, m, r)
	sleep(30*time.Minute - time.Second)
	wantStatus(t, m, sub.Dispatch, mailbox.Queued)
	sleep(time.Second)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
}

func watchFails(t *testing.T) {
	mem := memstore.New()
	var off switched
	off.fail("watch", 3)
	s := &script{}
	m := started(t, notified(&mailboxtest.Faulty{Store: mem, Plan: off.plan}, s, &witness{}))
	other := open(t, mailbox.Config{Runtime: &script{}, Store: mem})
	sleep(time.Second)
	sub := queued(t, other, request("t", "x"))
	sleep(0)
	wantStatus(t, m, sub.Dispatch, mailbox.Acked)
}

package mailbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// party is a run under way in another process, that accepts commands by the result of accept.
type party struct {
	here, there *mailbox.Mailbox
	first       mailbox.Submission
	received    int
}

// newParty starts it. Store is what the process here sees.
func newParty(t *testing.T, accept func(mailbox.Request) bool, see func(*memstore.Store) store.Store) *party {
	t.Helper()
	mem := memstore.New()
	return partyOf(t, accept, see(mem), mem)
}

// partyOf starts it on the stores that the processes see.
func partyOf(t *testing.T, accept func(mailbox.Request) bool, here, there store.Store) *party {
	t.Helper()
	p := &party{}
	s := &script{do: untilStopped, steer: func(_ string, r mailbox.Request) bool {
		p.received++
		return accept(r)
	}}
	p.there = started(t, mailbox.Config{Runtime: s, Store: there, Owner: "there"})
	p.here = open(t, mailbox.Config{Runtime: &script{}, Store: here, Owner: "here"})
	p.first = background(t, p.there, request("t", "first"))
	synctest.Wait()
	return p
}

func all(s *memstore.Store) store.Store { return s }

// dispatches is how many the thread has.
func (p *party) dispatches(t *testing.T) int {
	t.Helper()
	list, err := memList(t, p.here, "t")
	must(t, err)
	return len(list)
}

func (p *party) send(t *testing.T, expected string) mailbox.Submission {
	t.Helper()
	sub, err := p.here.SubmitLive(t.Context(), request("t", "more"), expected)
	must(t, err)
	return sub
}

// wantQueued checks that what was sent is queued behind the first one.
func (p *party) wantQueued(t *testing.T, sub mailbox.Submission) {
	t.Helper()
	if sub.Dispatch == p.first.Dispatch || sub.Running {
		t.Errorf("submission is %+v", sub)
	}
	wantStatus(t, p.here, sub.Dispatch, mailbox.Queued)
	equal(t, "dispatches", p.dispatches(t), 2)
}

// lossy is a store that loses the answers to commands.
type lossy struct{ *memstore.Store }

func (s lossy) Read(ctx context.Context, thread string, q store.Query) (store.Snapshot, error) {
	out, err := s.Store.Read(ctx, thread, q)
	if strings.HasPrefix(thread, "\xfflive/") {
		err = errors.Join(err, errors.New("no acknowledgement came"))
	}
	return out, err
}

func TestLive(t *testing.T) {
	t.Parallel()
	accept := func(mailbox.Request) bool { return true }
	cases(t, map[string]func(*testing.T){
		"live_then_queue_publishes_for_remote_active_run": func(t *testing.T) {
			p := newParty(t, accept, all)
			sub := p.send(t, p.first.Run)
			if sub.Dispatch != p.first.Dispatch || sub.Run != p.first.Run || !sub.Running {
				t.Errorf("submission is %+v", sub)
			}
			equal(t, "received", p.received, 1)
			equal(t, "dispatches", p.dispatches(t), 1)
		},
		"live_then_queue_falls_back_to_durable_dispatch_when_receiver_unavailable": func(t *testing.T) {
			s := &script{do: untilStopped} // takes no commands
			m := started(t, mailbox.Config{Runtime: s})
			first := background(t, m, request("t", "first"))
			synctest.Wait()
			sub, err := m.SubmitLive(t.Context(), request("t", "more"), "")
			must(t, err)
			if sub.Dispatch == first.Dispatch {
				t.Error("it counts as delivered")
			}
			wantStatus(t, m, sub.Dispatch, mailbox.Queued)
		},
		"live_then_queue_falls_back_when_subscriber_drops_receipt": func(t *testing.T) {
			p := newParty(t, func(mailbox.Request) bool { return false }, all)
			p.wantQueued(t, p.send(t, ""))
			equal(t, "received", p.received, 1)
		},
		"live_then_queue_falls_back_when_no_answer_comes": func(t *testing.T) {
			release := make(chan struct{})
			p := newParty(t, func(mailbox.Request) bool { <-release; return true }, all)
			begin := time.Now()
			p.wantQueued(t, p.send(t, ""))
			equal(t, "time that it waited", time.Since(begin), 5*time.Second)
			close(release)
			synctest.Wait()
		},
		"live_then_queue_is_at_least_once_when_ack_lost": func(t *testing.T) {
			p := newParty(t, accept, func(s *memstore.Store) store.Store { return lossy{s} })
			p.wantQueued(t, p.send(t, ""))
			equal(t, "received", p.received, 1)
		},
		"live_then_queue_rejects_remote_mismatched_expected_run_id": func(t *testing.T) {
			p := newParty(t, accept, all)
			p.wantQueued(t, p.send(t, "another run"))
			equal(t, "received", p.received, 0)
		},
		"live_then_queue_falls_back_to_queue_when_no_remote_subscriber": func(t *testing.T) {
			shared := memstore.New()
			p := partyOf(t, accept, shared, plain{shared}) // it is not notified of commands
			p.wantQueued(t, p.send(t, ""))
			equal(t, "received", p.received, 0)
		},
		"send_decision_unknown_id_returns_false": func(t *testing.T) {
			m := open(t, mailbox.Config{Runtime: &script{}})
			ok, err := m.Decide(t.Context(), "unknown", mailbox.Decision{Call: "c"})
			must(t, err)
			equal(t, "taken", ok, false)
		},
		"send_decision_live_delivers_to_remote_waiting_run": func(t *testing.T) {
			mem := memstore.New()
			s := &script{do: waitsOnce("tool_permission")}
			there := started(t, mailbox.Config{Runtime: s, Store: mem, Owner: "there"})
			here := open(t, mailbox.Config{Runtime: &script{}, Store: mem, Owner: "here"})
			sub := background(t, there, request("t", "x"))
			synctest.Wait()
			wantRun(t, here, sub.Run, mailbox.RunWaiting, "")
			ok, err := here.Decide(t.Context(), sub.Run, mailbox.Decision{Call: "c", Data: []byte("yes")})
			must(t, err)
			equal(t, "taken", ok, true)
			sleep(time.Second)
			wantRun(t, here, sub.Run, mailbox.RunDone, "natural")
			equal(t, "decision", s.jobs[1].Request.Decisions[0].Call+string(s.jobs[1].Request.Decisions[0].Data), "cyes")
			equal(t, "mode", s.jobs[1].Request.Mode, "resume")
		},
		"waiting_thread_is_reactivated_by_incoming_message":                  reactivates("background_tasks"),
		"structured_user_input_waiting_thread_is_reused_by_incoming_message": reactivates("user_input"),
	})
}

// reactivates: a message lets the run that waits continue, and it is done then.
func reactivates(wait string) func(*testing.T) {
	return func(t *testing.T) {
		s := &script{do: waitsOnce(wait)}
		m := started(t, mailbox.Config{Runtime: s})
		first := background(t, m, request("t", "first"))
		synctest.Wait()
		equal(t, "what it waits for", wantRun(t, m, first.Run, mailbox.RunWaiting, "").Wait, wait)
		wantStatus(t, m, first.Dispatch, mailbox.Acked)
		second := background(t, m, request("t", "second"))
		equal(t, "run", second.Run, first.Run)
		synctest.Wait()
		wantRun(t, m, first.Run, mailbox.RunDone, "natural")
		s.wantRan(t, "first", "second")
	}
}

// TestStreamsAcrossProcesses: a reader in one process continues with the events of another one that continues the dispatch.
func TestStreamsAcrossProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		here := started(t, mailbox.Config{Store: mem, Owner: "here", Retry: mailbox.Retry{Delay: time.Second}, Runtime: &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			j.Emit("text", []byte("a"))
			return mailbox.Result{}, errors.New("blip")
		}}})
		sub := background(t, here, request("t", "x"))
		synctest.Wait()
		must(t, here.Stop(t.Context()))
		started(t, mailbox.Config{Store: mem, Owner: "there", Runtime: &script{do: func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
			j.Emit("text", []byte("b"))
			return untilStopped(ctx, j)
		}}})
		sleep(2 * time.Second)
		must(t, here.Start(t.Context()))
		sleep(time.Second)
		d, _, err := here.Dispatch(t.Context(), sub.Dispatch)
		must(t, err)
		equal(t, "owner", d.Owner, "there")
		go func() {
			timer := time.NewTimer(time.Minute)
			<-timer.C
			_, _ = here.Cancel(t.Context(), sub.Dispatch)
		}()
		d, err = here.Await(t.Context(), sub.Dispatch)
		must(t, err)
		equal(t, "status", d.Status, mailbox.Cancelled)
		want := []string{"1:text:a", "2:mailbox_failed:blip", "8589934593:text:b", "8589934594:mailbox_settled:cancelled"}
		if got := events(t, sub.Events); !slices.Equal(got, want) {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

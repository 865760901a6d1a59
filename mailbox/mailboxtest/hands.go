package mailboxtest

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// hands is a runtime whose executions do what a test asks of them, and ignore their context.
type hands struct {
	begun chan *hand
	quit  chan struct{}
}

// hand is one execution. It continues until end receives what it came to.
type hand struct {
	*mailbox.Job

	//nolint:containedctx // of the execution, and the test waits for its end
	ctx context.Context
	end chan outcome
}

// outcome is what an execution came to.
type outcome struct {
	result mailbox.Result
	err    error
}

func newHands() *hands { return &hands{begun: make(chan *hand, 8), quit: make(chan struct{})} }

// Run implements mailbox.Runtime.
func (h *hands) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	x := &hand{Job: j, ctx: ctx, end: make(chan outcome)}
	h.begun <- x
	select {
	case o := <-x.end:
		return o.result, o.err
	case <-h.quit:
		return mailbox.Result{}, context.Canceled
	}
}

// commit writes for the execution, also when it was asked to end.
func (x *hand) commit(c mailbox.Commit) error { return x.Commit(context.WithoutCancel(x.ctx), c) }

// manual is a process that does something only when the test asks for it, by the test's clock, with what its executions are.
type manual struct {
	*mailbox.Mailbox

	t     *testing.T
	hands *hands
}

// manual makes a process on the store of the world, unless cfg has another one.
func (w *world) manual(change ...func(*mailbox.Config)) *manual {
	w.t.Helper()
	cfg := mailbox.Config{
		Store: w.store, Owner: "worker", Now: w.clock.Now, Poll: time.Nanosecond, Retention: mailbox.Retention{Interval: -1},
		Lease: mailbox.Lease{Duration: lease, Renew: lease - time.Second, Skew: -1}, Retry: mailbox.Retry{Delay: time.Nanosecond, MaxDelay: time.Nanosecond},
	}
	for _, f := range change {
		f(&cfg)
	}
	m := &manual{t: w.t, hands: newHands()}
	cfg.Runtime = m.hands
	m.Mailbox = w.box(cfg)
	w.t.Cleanup(func() { close(m.hands.quit) })
	return m
}

// queue queues a request whose dispatch has that id, and its run the id "run-" and that.
func (m *manual) queue(thread, id string, change ...func(*mailbox.Request)) mailbox.Submission {
	m.t.Helper()
	r := request(thread, id)
	for _, f := range change {
		f(&r)
	}
	sub, err := m.SubmitBackground(m.t.Context(), r)
	must(m.t, err)
	return sub
}

func request(thread, id string) mailbox.Request {
	return mailbox.Request{Thread: thread, DispatchIDHint: id, NewRun: "run-" + id, Messages: []mailbox.Input{{ID: "message of " + id, Data: []byte(id)}}}
}

// poll polls, and returns the executions that it has begun.
func (m *manual) poll() (begun []*hand) {
	m.t.Helper()
	before := len(m.Executing())
	_, err := m.Poll(m.t.Context())
	must(m.t, err)
	for range len(m.Executing()) - before {
		begun = append(begun, <-m.hands.begun)
	}
	return begun
}

// begin queues a request and begins its execution.
func (m *manual) begin(thread, id string, change ...func(*mailbox.Request)) *hand {
	m.t.Helper()
	m.queue(thread, id, change...)
	begun := m.poll()
	if len(begun) != 1 || begun[0].Dispatch.ID != id {
		m.t.Fatalf("%d executions have begun, want that of %s", len(begun), id)
	}
	return begun[0]
}

// finish ends an execution, and waits until it is settled.
func (m *manual) finish(x *hand, result mailbox.Result, err error) mailbox.Dispatch {
	m.t.Helper()
	x.end <- outcome{result, err}
	settled(m.Mailbox, x.Dispatch.Token)
	d, _, err := m.Mailbox.Dispatch(m.t.Context(), x.Dispatch.ID)
	must(m.t, err)
	return d
}

// settled waits until the execution of a claim is over.
func settled(m *mailbox.Mailbox, token string) {
	for {
		over := true
		for _, d := range m.Executing() {
			over = over && d.Token != token
		}
		if over {
			return
		}
		<-time.After(100 * time.Microsecond)
	}
}

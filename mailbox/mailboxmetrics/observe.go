package mailboxmetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise/mailbox"
)

// Operation implements mailbox.Observer.
func (m *Metrics) Operation(ctx context.Context, o mailbox.Operation) (context.Context, func(mailbox.OperationResult, error)) {
	begin := time.Now()
	return ctx, func(r mailbox.OperationResult, _ error) {
		m.operations.WithLabelValues(string(o.Name), string(r)).Inc()
		m.durations.WithLabelValues(string(o.Name), string(r)).Observe(time.Since(begin).Seconds())
	}
}

// Execution implements mailbox.Observer.
func (m *Metrics) Execution(ctx context.Context, j *mailbox.Job) (context.Context, func(mailbox.Outcome, error)) {
	m.active.Inc()
	since(m.enqueued, j.Dispatch.CreatedAt, j.StartedAt)
	since(m.eligible, j.Dispatch.AvailableAt, j.StartedAt)
	since(m.claimed, j.Dispatch.UpdatedAt, j.StartedAt)
	begin, end := time.Now(), m.oldest.begin()
	return ctx, func(o mailbox.Outcome, err error) {
		end()
		if err != nil {
			m.failures.WithLabelValues(class(err)).Inc()
		}
		m.active.Dec()
		m.runtime.WithLabelValues(string(o)).Observe(time.Since(begin).Seconds())
	}
}

// Settled implements mailbox.Observer.
func (m *Metrics) Settled(_ context.Context, k mailbox.Taken) {
	outcome := string(k.Dispatch.Outcome())
	m.runs.WithLabelValues(outcome).Inc()
	since(m.complete.WithLabelValues(outcome), k.Dispatch.CreatedAt, k.Dispatch.CompletedAt)
	if k.Run.Status == mailbox.RunDone && !k.Run.StartedAt.IsZero() {
		since(m.runDurations.WithLabelValues(outcome), k.Run.StartedAt, k.Run.FinishedAt)
	}
}

// Signal implements mailbox.Observer.
func (m *Metrics) Signal(_ context.Context, e mailbox.SignalEvent) {
	switch e {
	case mailbox.SignalPulled:
		m.pulled.Inc()
	case mailbox.SignalRedelivered:
		m.redelivered.Inc()
	case mailbox.SignalAcked:
		m.acked.Inc()
	case mailbox.SignalNacked:
		m.nacked.WithLabelValues("false").Inc()
	case mailbox.SignalDelayed:
		m.nacked.WithLabelValues("true").Inc()
	}
}

// since observes the time between two moments of the mailbox's clock. Clocks of several
// processes may differ by some.
func since(h prometheus.Observer, from, to time.Time) {
	h.Observe(max(to.Sub(from), 0).Seconds())
}

package mailboxmetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise/mailbox"
)

// Operation implements mailbox.Observer.
func (m *Metrics) Operation(ctx context.Context, o mailbox.Operation) (context.Context, func(string, error)) {
	begin := time.Now()
	return ctx, func(r string, _ error) {
		m.operations.WithLabelValues(o.Name, r).Inc()
		m.durations.WithLabelValues(o.Name, r).Observe(time.Since(begin).Seconds())
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
func (m *Metrics) Settled(_ context.Context, d mailbox.Dispatch, r mailbox.Run) {
	outcome := string(d.Outcome())
	m.runs.WithLabelValues(outcome).Inc()
	since(m.complete.WithLabelValues(outcome), d.CreatedAt, d.CompletedAt)
	if r.Status == mailbox.RunDone && !r.StartedAt.IsZero() {
		since(m.runDurations.WithLabelValues(outcome), r.StartedAt, r.FinishedAt)
	}
}

// since observes the time between two moments of the mailbox's clock. Clocks of several
// processes may differ by some.
func since(h prometheus.Observer, from, to time.Time) {
	h.Observe(max(to.Sub(from), 0).Seconds())
}

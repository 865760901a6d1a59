package mailboxmetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise/mailbox"
)

// countTime is how long a collection may take to count the store.
const countTime = 5 * time.Second

// depths counts the store whenever it is collected.
type depths struct {
	store  Counter
	queue  *prometheus.Desc
	depth  *prometheus.Desc
	age    *prometheus.Desc
	clock  *prometheus.Desc
	errors prometheus.Counter
	now    func() time.Time
}

// planner tells what is due. A mailbox.Store is one.
type planner interface {
	Due(ctx context.Context, q mailbox.DueQuery) (due []mailbox.Head, next time.Time, err error)
}

func newDepths(store Counter, now func() time.Time) *depths {
	return &depths{
		store: store,
		now:   now,
		age:   prometheus.NewDesc("mortise_mailbox_due_age_seconds", "How long the thread that comes next has been due; 0 if none is.", nil, nil),
		clock: prometheus.NewDesc("mortise_mailbox_clock_offset_seconds",
			"How far the clock of this process is ahead of the store's; negative if it is behind.", nil, nil),
		queue:  prometheus.NewDesc("mortise_mailbox_queue_depth", "Dispatches that are queued.", nil, nil),
		depth:  prometheus.NewDesc("mortise_mailbox_dispatch_depth", "Dispatches that the store holds, by status.", []string{"status"}, nil),
		errors: counter("mortise_mailbox_depth_errors_total", "Collections for which the store could not be counted."),
	}
}

// Describe implements prometheus.Collector.
func (d *depths) Describe(out chan<- *prometheus.Desc) {
	out <- d.queue
	out <- d.depth
	out <- d.age
	out <- d.clock
	d.errors.Describe(out)
}

// Collect implements prometheus.Collector.
func (d *depths) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), countTime) //nolint:forbidigo // a collection has no context
	defer cancel()
	c, err := d.store.Count(ctx)
	if err != nil {
		d.errors.Inc()
	} else {
		out <- prometheus.MustNewConstMetric(d.queue, prometheus.GaugeValue, float64(c.Status[mailbox.Queued]))
		for _, s := range mailbox.Statuses() {
			out <- prometheus.MustNewConstMetric(d.depth, prometheus.GaugeValue, float64(c.Status[s]), string(s))
		}
	}
	d.collectAge(ctx, out, d.collectClock(ctx, out))
	d.errors.Collect(out)
}

// collectClock compares the clock of this process with the store's, if it has one, and returns the time by which leases go.
func (d *depths) collectClock(ctx context.Context, out chan<- prometheus.Metric) time.Time {
	began := d.now()
	store, ok := d.store.(mailbox.Clock)
	if !ok {
		return began
	}
	now, err := store.Time(ctx)
	if err != nil {
		d.errors.Inc()
		return began
	}
	between := began.Add(d.now().Sub(began) / 2)
	out <- prometheus.MustNewConstMetric(d.clock, prometheus.GaugeValue, between.Sub(now).Seconds())
	return now
}

// collectAge asks what is due first: work that nobody takes, or a lease that is over.
func (d *depths) collectAge(ctx context.Context, out chan<- prometheus.Metric, now time.Time) {
	store, ok := d.store.(planner)
	if !ok {
		return
	}
	due, _, err := store.Due(ctx, mailbox.DueQuery{By: now, Limit: 1})
	if err != nil {
		d.errors.Inc()
		return
	}
	var age time.Duration
	if len(due) > 0 {
		age = now.Sub(due[0].DueAt)
	}
	out <- prometheus.MustNewConstMetric(d.age, prometheus.GaugeValue, age.Seconds())
}

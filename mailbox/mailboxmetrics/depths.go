package mailboxmetrics

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// countTime is how long a collection may take to count the store.
const countTime = 5 * time.Second

// depths counts the store whenever it is collected.
type depths struct {
	store  store.Store
	box    *mailbox.Mailbox
	queue  *prometheus.Desc
	depth  *prometheus.Desc
	age    *prometheus.Desc
	clock  *prometheus.Desc
	errors prometheus.Counter
	now    func() time.Time
}

func newDepths(s store.Store, now func() time.Time) (*depths, error) {
	q, err := mailbox.New(context.Background(), mailbox.Config{Store: s, Now: now}) //nolint:forbidigo // it executes nothing
	if err != nil {
		return nil, err
	}
	return &depths{
		store: s,
		box:   q,
		now:   now,
		age:   prometheus.NewDesc("mortise_mailbox_due_age_seconds", "How long the thread that comes next has been due; 0 if none is.", nil, nil),
		clock: prometheus.NewDesc("mortise_mailbox_clock_offset_seconds",
			"How far the clock of this process is ahead of the store's; negative if it is behind.", nil, nil),
		queue:  prometheus.NewDesc("mortise_mailbox_queue_depth", "Dispatches that are queued.", nil, nil),
		depth:  prometheus.NewDesc("mortise_mailbox_dispatch_depth", "Dispatches that the store holds, by status.", []string{"status"}, nil),
		errors: counter("mortise_mailbox_depth_errors_total", "Collections for which the store could not be counted."),
	}, nil
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
	counts, err := d.box.Count(ctx)
	if err != nil {
		d.errors.Inc()
	} else {
		out <- prometheus.MustNewConstMetric(d.queue, prometheus.GaugeValue, float64(counts[mailbox.Queued]))
		for _, s := range mailbox.Statuses() {
			out <- prometheus.MustNewConstMetric(d.depth, prometheus.GaugeValue, float64(counts[s]), string(s))
		}
	}
	d.collectAge(ctx, out, d.collectClock(ctx, out))
	d.errors.Collect(out)
}

// collectClock compares the clock of this process with the store's, if it has one, and returns the time by which leases go.
func (d *depths) collectClock(ctx context.Context, out chan<- prometheus.Metric) time.Time {
	began := d.now()
	clock, ok := d.store.(store.Clock)
	if !ok {
		return began
	}
	now, err := clock.Time(ctx)
	if err != nil {
		d.errors.Inc()
		return began
	}
	between := began.Add(d.now().Sub(began) / 2)
	out <- prometheus.MustNewConstMetric(d.clock, prometheus.GaugeValue, between.Sub(now).Seconds())
	return now
}

// collectAge reads what is due first: work that no process claims, or a lease that is over.
func (d *depths) collectAge(ctx context.Context, out chan<- prometheus.Metric, now time.Time) {
	due, err := d.box.Due(ctx, now, 1)
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

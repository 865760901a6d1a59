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
	errors prometheus.Counter
}

func newDepths(store Counter) *depths {
	return &depths{
		store:  store,
		queue:  prometheus.NewDesc("mortise_mailbox_queue_depth", "Dispatches that are queued.", nil, nil),
		depth:  prometheus.NewDesc("mortise_mailbox_dispatch_depth", "Dispatches that the store holds, by status.", []string{"status"}, nil),
		errors: counter("mortise_mailbox_depth_errors_total", "Collections for which the store could not be counted."),
	}
}

// Describe implements prometheus.Collector.
func (d *depths) Describe(out chan<- *prometheus.Desc) {
	out <- d.queue
	out <- d.depth
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
	d.errors.Collect(out)
}

package mailboxmetrics

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// oldest returns how long the oldest execution of this process has been under way.
type oldest struct {
	desc *prometheus.Desc

	mu    sync.Mutex
	begun map[*time.Time]struct{}
}

func newOldest() *oldest {
	return &oldest{
		desc: prometheus.NewDesc("mortise_mailbox_oldest_execution_seconds",
			"How long the oldest execution of this process has been under way; 0 if there is none.", nil, nil),
		begun: map[*time.Time]struct{}{},
	}
}

// begin notes an execution until end is called.
func (o *oldest) begin() (end func()) {
	at := time.Now()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.begun[&at] = struct{}{}
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.begun, &at)
	}
}

// Describe implements prometheus.Collector.
func (o *oldest) Describe(out chan<- *prometheus.Desc) { out <- o.desc }

// Collect implements prometheus.Collector.
func (o *oldest) Collect(out chan<- prometheus.Metric) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var age time.Duration
	for at := range o.begun {
		age = max(age, time.Since(*at))
	}
	out <- prometheus.MustNewConstMetric(o.desc, prometheus.GaugeValue, age.Seconds())
}

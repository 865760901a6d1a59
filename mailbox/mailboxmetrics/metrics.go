package mailboxmetrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// Config makes [Metrics].
type Config struct {
	// Registry takes the metrics. Required.
	Registry prometheus.Registerer
	// Store is the mailbox's. It is counted at each collection; nil leaves the depths out.
	Store store.Store
	// Now is the clock of the mailbox; time.Now when nil.
	Now func() time.Time
}

// Metrics is a mailbox.Observer. Make it with [New].
type Metrics struct {
	now func() time.Time

	active       prometheus.Gauge
	operations   *prometheus.CounterVec
	durations    *prometheus.HistogramVec
	runs         *prometheus.CounterVec
	runDurations *prometheus.HistogramVec
	enqueued     prometheus.Histogram
	eligible     prometheus.Histogram
	claimed      prometheus.Histogram
	runtime      *prometheus.HistogramVec
	complete     *prometheus.HistogramVec
	failures     *prometheus.CounterVec
	oldest       *oldest
}

var _ mailbox.Observer = (*Metrics)(nil)

// New makes the metrics and registers them.
func New(cfg Config) (*Metrics, error) {
	if cfg.Registry == nil {
		return nil, errors.New("mailboxmetrics: Config.Registry is nil: give it a prometheus.Registry")
	}
	m := newMetrics()
	if m.now = cfg.Now; m.now == nil {
		m.now = time.Now
	}
	all := []prometheus.Collector{
		m.active, m.operations, m.durations, m.runs, m.runDurations, m.enqueued, m.eligible, m.claimed,
		m.runtime, m.complete, m.failures, m.oldest,
	}
	if cfg.Store != nil {
		depths, err := newDepths(cfg.Store, m.now)
		if err != nil {
			return nil, fmt.Errorf("mailboxmetrics: %w", err)
		}
		all = append(all, depths)
	}
	for i, c := range all {
		if err := cfg.Registry.Register(c); err != nil {
			for _, c := range all[:i] {
				cfg.Registry.Unregister(c)
			}
			return nil, fmt.Errorf("mailboxmetrics: %w", err)
		}
	}
	return m, nil
}

func newMetrics() *Metrics {
	return &Metrics{
		active: gauge("mortise_active_runs", "Runs that this process executes now."),
		operations: counters("mortise_mailbox_operations_total", "Operations on the mailbox's store, by what they do and how they came out.",
			"operation", "result"),
		durations: histograms("mortise_mailbox_operation_duration_seconds", "How long operations on the mailbox's store take.", quick(),
			"operation", "result"),
		runs:         counters("mortise_runs_total", "Dispatches that came to an end, by their outcome.", "outcome"),
		runDurations: histograms("mortise_run_duration_seconds", "Time from the first start of a run to its end.", slow(), "outcome"),
		enqueued:     histogram("mortise_mailbox_dispatch_enqueue_to_start_seconds", "Time from the submission to the start of an execution."),
		eligible:     histogram("mortise_mailbox_dispatch_eligible_to_start_seconds", "Time from the moment when a dispatch was due to its start."),
		claimed:      histogram("mortise_mailbox_dispatch_claim_to_start_seconds", "Time from the claim to the start of an execution."),
		runtime:      histograms("mortise_mailbox_dispatch_runtime_seconds", "How long executions take.", slow(), "outcome"),
		complete: histograms("mortise_mailbox_dispatch_enqueue_to_complete_seconds", "Time from the submission to the end of a dispatch.", slow(),
			"outcome"),
		failures: counters("mortise_errors_total", "Executions that ended with an error, by its class.", "class"),
		oldest:   newOldest(),
	}
}

// quick are the buckets of what a store does, slow those of what a model does.
func quick() []float64 { return prometheus.ExponentialBuckets(0.0001, 3, 11) }

func slow() []float64 { return prometheus.ExponentialBuckets(0.005, 3, 13) }

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func counters(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func histogram(name, help string) prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: slow()})
}

func histograms(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
}

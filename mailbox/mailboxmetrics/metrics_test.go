package mailboxmetrics_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxmetrics"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// second is a runtime that takes a second, and does what the message asks.
type second struct{}

func (second) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return mailbox.Result{}, ctx.Err()
	}
	switch string(j.Request.Messages[0].Data) {
	case "blip":
		if j.Attempt == 1 {
			return mailbox.Result{}, errors.New("blip")
		}
	case "wrong":
		return mailbox.Result{}, mailbox.ErrPermanent
	}
	return mailbox.Result{}, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newBox(t *testing.T) (*mailbox.Mailbox, *prometheus.Registry) {
	t.Helper()
	mem, registry := memstore.New(), prometheus.NewRegistry()
	m, err := mailboxmetrics.New(mailboxmetrics.Config{Registry: registry, Store: mem})
	must(t, err)
	box, err := mailbox.New(t.Context(), mailbox.Config{Store: mem, Runtime: second{}, Observers: []mailbox.Observer{m}})
	must(t, err)
	t.Cleanup(func() { must(t, box.Close(context.Background())) })
	must(t, box.Start(t.Context()))
	return box, registry
}

func submit(t *testing.T, box *mailbox.Mailbox, thread, text string) mailbox.Submission {
	t.Helper()
	sub, err := box.SubmitBackground(t.Context(), mailbox.Request{Thread: thread, Messages: []mailbox.Input{{Data: []byte(text)}}})
	must(t, err)
	return sub
}

// gathered is a metric by its labels, in the order of their names.
func gathered(t *testing.T, r *prometheus.Registry, name string) map[string]*dto.Metric {
	t.Helper()
	families, err := r.Gather()
	must(t, err)
	out := map[string]*dto.Metric{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			out[strings.Join(labels, ",")] = m
		}
	}
	return out
}

func TestLatencies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, registry := newBox(t)
		submit(t, box, "t", "first")
		submit(t, box, "t", "second")
		time.Sleep(time.Minute)
		for name, want := range map[string]float64{
			"mortise_mailbox_dispatch_enqueue_to_start_seconds":    1,
			"mortise_mailbox_dispatch_eligible_to_start_seconds":   1,
			"mortise_mailbox_dispatch_claim_to_start_seconds":      0,
			"mortise_mailbox_dispatch_runtime_seconds":             2,
			"mortise_mailbox_dispatch_enqueue_to_complete_seconds": 3,
			"mortise_run_duration_seconds":                         2,
		} {
			for labels, m := range gathered(t, registry, name) {
				h := m.GetHistogram()
				if h.GetSampleCount() != 2 || h.GetSampleSum() != want || (labels != "" && labels != "completed") {
					t.Errorf("%s{%s}: %d samples, %v seconds, want 2 and %v", name, labels, h.GetSampleCount(), h.GetSampleSum(), want)
				}
			}
			if len(gathered(t, registry, name)) != 1 {
				t.Errorf("%s: %d series", name, len(gathered(t, registry, name)))
			}
		}
		counted(t, registry, "mortise_runs_total", map[string]float64{"completed": 2})
		counted(t, registry, "mortise_mailbox_operations_total", map[string]float64{"enqueue,ok": 2, "claim,ok": 1, "ack,ok": 2}) // the first one was claimed as it was queued
	})
}

// counted checks counters by their labels.
func counted(t *testing.T, r *prometheus.Registry, name string, want map[string]float64) {
	t.Helper()
	all := gathered(t, r, name)
	for labels, n := range want {
		if got := all[labels].GetCounter().GetValue(); got != n {
			t.Errorf("%s{%s} is %v, want %v", name, labels, got, n)
		}
	}
}

// TestClockOffset: the clock of the process is compared with the store's, by which leases go and what is due is late.
func TestClockOffset(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem, registry := memstore.New(), prometheus.NewRegistry()
		_, err := mailboxmetrics.New(mailboxmetrics.Config{
			Registry: registry, Store: mem, Now: func() time.Time { return time.Now().Add(time.Minute) },
		})
		must(t, err)
		box, err := mailbox.New(t.Context(), mailbox.Config{Store: mem})
		must(t, err)
		_, err = box.SubmitBackground(t.Context(), mailbox.Request{Messages: []mailbox.Input{{Data: []byte("x")}}})
		must(t, err)
		time.Sleep(5 * time.Second)
		for name, want := range map[string]float64{"mortise_mailbox_clock_offset_seconds": 60, "mortise_mailbox_due_age_seconds": 5} {
			if got := gathered(t, registry, name)[""].GetGauge().GetValue(); got != want {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	})
}

func TestOutcomes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, registry := newBox(t)
		for _, text := range []string{"fine", "blip", "wrong", "stopped"} {
			submit(t, box, text, text)
		}
		queued := submit(t, box, "stopped", "queued")
		active := func() float64 { return gathered(t, registry, "mortise_active_runs")[""].GetGauge().GetValue() }
		synctest.Wait()
		if n := active(); n != 4 {
			t.Errorf("%v runs are active", n)
		}
		if n := gathered(t, registry, "mortise_mailbox_queue_depth")[""].GetGauge().GetValue(); n != 1 {
			t.Errorf("%v are queued", n)
		}
		if n := gathered(t, registry, "mortise_mailbox_dispatch_depth")["claimed"].GetGauge().GetValue(); n != 4 {
			t.Errorf("%v are claimed", n)
		}
		ok, err := box.Cancel(t.Context(), queued.Dispatch)
		must(t, err)
		ok2, err := box.CancelThread(t.Context(), "stopped")
		must(t, err)
		time.Sleep(time.Minute)
		if !ok || !ok2 || active() != 0 {
			t.Errorf("cancelled: %v, %v; %v runs are active", ok, ok2, active())
		}
		counts := map[string]float64{}
		for labels, m := range gathered(t, registry, "mortise_runs_total") {
			counts[labels] = m.GetCounter().GetValue()
		}
		if want := map[string]float64{"completed": 2, "dead_letter": 1, "cancelled": 2}; !maps.Equal(counts, want) {
			t.Errorf("runs by outcome %v, want %v", counts, want)
		}
		runtime := slices.Sorted(maps.Keys(gathered(t, registry, "mortise_mailbox_dispatch_runtime_seconds")))
		if want := []string{"cancelled", "completed", "permanent_error", "transient_error"}; !slices.Equal(runtime, want) {
			t.Errorf("executions by outcome %q, want %q", runtime, want)
		}
		operations := gathered(t, registry, "mortise_mailbox_operations_total")
		for labels, want := range map[string]float64{"enqueue,ok": 5, "nack,ok": 1, "dead_letter,ok": 1, "ack,ok": 2, "cancel_claimed,ok": 1} {
			if got := operations[labels].GetCounter().GetValue(); got != want {
				t.Errorf("operations{%s} is %v, want %v", labels, got, want)
			}
		}
	})
}

// What failed, by class, how long it took so far, and how late what is due is.
func TestTrouble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box, registry := newBox(t)
		value := func(name string) float64 { return gathered(t, registry, name)[""].GetGauge().GetValue() }
		for _, text := range []string{"blip", "wrong"} {
			submit(t, box, text, text)
		}
		first := submit(t, box, "stopped", "fine")
		time.Sleep(300 * time.Millisecond)
		if age := value("mortise_mailbox_oldest_execution_seconds"); age != 0.3 {
			t.Errorf("the oldest execution is %v s old", age)
		}
		if _, err := box.Cancel(t.Context(), first.Dispatch); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		must(t, box.Stop(t.Context()))
		submit(t, box, "late", "late")
		time.Sleep(5 * time.Second)
		if age := value("mortise_mailbox_due_age_seconds"); age != 5 {
			t.Errorf("what is due is %v s late", age)
		}
		if age := value("mortise_mailbox_oldest_execution_seconds"); age != 0 {
			t.Errorf("the oldest execution is %v s old, and there is none", age)
		}
		counts := map[string]float64{}
		for class, m := range gathered(t, registry, "mortise_errors_total") {
			counts[class] = m.GetCounter().GetValue()
		}
		if want := map[string]float64{"transient": 1, "permanent": 1, "stopped": 1}; !maps.Equal(counts, want) {
			t.Errorf("errors by class %v, want %v", counts, want)
		}
	})
}

// taker is a runtime whose runs take messages, and no decisions.
type taker struct{ second }

func (taker) Steer(_ context.Context, _, _ string, r mailbox.Request) bool {
	return len(r.Messages) > 0
}

// TestLiveDeliveries: commands to other processes are counted by whether a run accepted them.
func TestLiveDeliveries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem, registry := memstore.New(), prometheus.NewRegistry()
		m, err := mailboxmetrics.New(mailboxmetrics.Config{Registry: registry})
		must(t, err)
		there, err := mailbox.New(t.Context(), mailbox.Config{Store: mem, Runtime: taker{}})
		must(t, err)
		defer func() { must(t, there.Close(t.Context())) }()
		must(t, there.Start(t.Context()))
		here, err := mailbox.New(t.Context(), mailbox.Config{Store: mem, Runtime: second{}, Observers: []mailbox.Observer{m}})
		must(t, err)
		defer func() { must(t, here.Close(t.Context())) }()
		sub := submit(t, there, "t", "x")
		synctest.Wait()
		if ok, err := here.Decide(t.Context(), sub.Run, mailbox.Decision{Call: "c"}); !ok || err != nil {
			t.Errorf("decided: %v, %v", ok, err)
		}
		live, err := here.SubmitLive(t.Context(), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("more")}}}, sub.Run)
		must(t, err)
		if live.Dispatch != sub.Dispatch {
			t.Errorf("the message came to dispatch %q", live.Dispatch)
		}
		if ok, err := here.Cancel(t.Context(), sub.Dispatch); !ok || err != nil {
			t.Errorf("cancelled: %v, %v", ok, err)
		}
		operations := gathered(t, registry, "mortise_mailbox_operations_total")
		for labels, want := range map[string]float64{"live_delivery,ok": 1, "live_delivery,empty": 1} {
			if got := operations[labels].GetCounter().GetValue(); got != want {
				t.Errorf("operations{%s} is %v, want %v", labels, got, want)
			}
		}
	})
}

// down is a store that cannot be counted.
type down struct{ store.Store }

func (down) Count(context.Context, string) (map[string]int, error) { return nil, errors.New("down") }

func TestStoreThatCannotBeCounted(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	_, err := mailboxmetrics.New(mailboxmetrics.Config{Registry: registry, Store: down{memstore.New()}})
	must(t, err)
	if n := len(gathered(t, registry, "mortise_mailbox_queue_depth")); n != 0 {
		t.Error("a depth that is not known is reported")
	}
	if n := gathered(t, registry, "mortise_mailbox_depth_errors_total")[""].GetCounter().GetValue(); n < 1 {
		t.Errorf("%v errors", n)
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := mailboxmetrics.New(mailboxmetrics.Config{}); err == nil || !strings.Contains(err.Error(), "Registry") {
		t.Errorf("without a registry: %v", err)
	}
	registry := prometheus.NewRegistry()
	_, err := mailboxmetrics.New(mailboxmetrics.Config{Registry: registry})
	must(t, err)
	if _, err := mailboxmetrics.New(mailboxmetrics.Config{Registry: registry}); err == nil {
		t.Error("the same metrics twice in one registry")
	}
}

package future_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/compaction/eval/future"
)

// window is a session in which every second file of n is needed later.
func window(t *testing.T, name string, n int) future.Window {
	t.Helper()
	log := new(talk).user("Read the files, and then begin again.")
	for i := range n {
		log.read(fmt.Sprintf("/w/%s/file%03d.go", name, i))
	}
	at := len(log.messages)
	for i := 0; i < n; i += 2 {
		log.edit(fmt.Sprintf("/w/%s/file%03d.go", name, i))
	}
	s := future.Session{Name: name, Messages: log.messages, Compactions: []future.Compaction{{At: at, Summary: "Files were read: /w/" + name + "/file000.go", Continued: true}}}
	w, ok := future.First(s)
	if !ok || len(w.Needed) != n/2 {
		t.Fatalf("%v, %d facts, want %d", ok, len(w.Needed), n/2)
	}
	return w
}

func TestRun(t *testing.T) {
	t.Parallel()
	windows := []future.Window{window(t, "a", 20), window(t, "b", 40), window(t, "few", 10)}
	asked := 0
	all := policy("all", func(r *abi.SummarizeRequest) (string, error) {
		asked++
		text := ""
		if r.PreviousSummary != nil {
			text = *r.PreviousSummary
		}
		return text + eval.Flatten(r.Messages), nil
	})
	broken := policy("broken", func(*abi.SummarizeRequest) (string, error) { return "", errors.New("no summary") })
	var last eval.Progress
	said := 0
	report, err := future.Run(t.Context(), future.Config{
		Windows: windows, Contenders: append(future.Baselines(), all, broken), Sizes: []future.Size{{}, {Share: 1}}, Chains: []int{1, 4},
		Progress: func(p eval.Progress) { last = p },
		Complete: func(_ *abi.SummarizeRequest, m []abi.Message) { said = max(said, len(m)) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(report.Windows) != 2 || len(report.Rows) != 2+6*2*2 {
		t.Fatalf("%d windows, %d rows", len(report.Windows), len(report.Rows))
	}
	if last.Done != last.All || last.All != 6*2*2*(1+4) || asked != 2*2*(1+4) || said != len(windows[1].Before) {
		t.Errorf("progress %+v, asked %d times, said %d", last, asked, said)
	}
	vendor, ok := report.Find(future.Vendor, future.Size{}, 1)
	if !ok || vendor.Facts != 30 || vendor.Windows != 2 || vendor.Strict.Value != 2.0/30 || vendor.Kind != eval.KindBaseline {
		t.Errorf("vendor: %+v", vendor)
	}
	if repaired, ok := report.Find(future.Repaired, future.Size{}, 1); !ok || repaired.Strict.Value <= vendor.Strict.Value {
		t.Errorf("repaired: %+v", repaired)
	}
	for _, chain := range []int{1, 4} {
		row, _ := report.Find("all", future.Size{Share: 1}, chain)
		if s := row.Strict; s.Value != 1 || s.Interval != nil || row.Grounded.Value > 1 || row.Failures != 0 {
			t.Errorf("all, chain of %d: %+v", chain, row)
		}
	}
	if row, _ := report.Find("broken", future.Size{}, 4); row.Failures != 8 || row.Error != "no summary" || row.Strict.Value != 0 {
		t.Errorf("broken: %+v", row)
	}
	if row, _ := report.Find("all", future.Size{}, 1); row.Overruns != 2 || row.Bytes > vendor.Bytes {
		t.Errorf("too long: %+v", row)
	}
	for _, name := range []string{"last-n", "index", "index-own", "half-half"} {
		row, ok := report.Find(name, future.Size{}, 1)
		if !ok || row.Overruns != 0 || row.Failures != 0 || row.Bytes > vendor.Bytes {
			t.Errorf("%s: %+v", name, row)
		}
	}
}

func TestRunErrors(t *testing.T) {
	t.Parallel()
	if _, err := future.Run(t.Context(), future.Config{Windows: []future.Window{window(t, "few", 10)}}); !errors.Is(err, future.ErrNoWindows) {
		t.Errorf("error %v", err)
	}
	if _, err := future.Run(t.Context(), future.Config{Chains: []int{0}}); err == nil || !strings.Contains(err.Error(), "Config.Chains: 0") {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := future.Run(ctx, future.Config{Windows: []future.Window{window(t, "a", 20)}, Contenders: future.Baselines()}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Shorter texts cost less, a model's own call costs something, and a pause longer
// than the life of the cache costs the same with or without a swap.
func TestCost(t *testing.T) {
	t.Parallel()
	w := window(t, "a", 400)
	long := policy("long", func(r *abi.SummarizeRequest) (string, error) {
		return strings.Repeat("word ", int(r.BudgetTokens)/5), nil
	})
	short := policy("short", func(*abi.SummarizeRequest) (string, error) { return "short", nil })
	run := func(w future.Window) map[string]float64 {
		r, err := future.Run(t.Context(), future.Config{
			Windows: []future.Window{w}, Contenders: []eval.Contender{long, short}, Sizes: []future.Size{{Share: 1}}, Chains: []int{1},
			Prices: future.Prices{Read: 0.1, Write: 1.25, Output: 5, Life: time.Minute},
		})
		if err != nil {
			t.Fatal(err)
		}
		out := make(map[string]float64)
		for _, row := range r.Rows {
			out[row.Contender] = row.Cost.Value
		}
		return out
	}
	c := run(w)
	if !(c["short"] < c[future.Vendor] && c[future.Vendor] < c["long"]) || c["short"] <= 0 {
		t.Errorf("costs %v", c)
	}
	w.Times = make([]time.Time, len(w.Before)+len(w.After))
	for i := range w.Times {
		w.Times[i] = time.Unix(int64(i)*3600, 0)
	}
	if cold := run(w); cold["short"] >= c["short"] {
		t.Errorf("with a cold cache the gain of a short text is not larger: %v, %v", cold, c)
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"vendor", "1%", "4.3%", "100%"} {
		size, err := future.ParseSize(s)
		if err != nil || size.String() != s {
			t.Errorf("%q: %v, %v", s, size, err)
		}
	}
	for _, s := range []string{"", "0%", "101%", "-1%", "2000", "x%", "NaN%"} {
		if _, err := future.ParseSize(s); err == nil {
			t.Errorf("%q is taken", s)
		}
	}
}

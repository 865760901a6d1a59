package proxycmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/proxy"
)

// proxyAdmin serves metrics and the ledger.
func proxyAdmin(s *proxy.Server) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(&program.ProxyMetrics{Report: s.Report})
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /v1/proxy", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(s.Report())
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if hint := proxy.Foreign(r); hint != "" {
			http.Error(w, hint, http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// printLedger prints what was paid and what would have been.
func printLedger(w io.Writer, r *proxy.Report) {
	t := &r.Total
	if t.Paid.Calls == 0 {
		return
	}
	fmt.Fprintf(w, "mortise proxy: %s, %s", term.Counted(int(t.Paid.Calls), "request"), amount(t.Paid.Units, t.Paid.USD))
	if r.Side.Calls > 0 {
		fmt.Fprintf(w, " and %s, %s", term.Counted(int(r.Side.Calls), "side request"), amount(r.Side.Units, r.Side.USD))
	}
	swaps := int(r.Counts["swaps"])
	fmt.Fprintf(w, "; %s put in\n", term.Counted(swaps, "compaction"))
	switch {
	case swaps == 0: // what a gate costs is no saving of compactions
		return
	case t.SavedWithout == nil:
		fmt.Fprintf(w, "  saved: unknown, since the cache rules miss the bill by %.0f %%\n", 100*t.MachineError)
		return
	}
	fmt.Fprintf(w, "  saved against no compaction: %.1f %%; against the agent's own: %.1f %% (cache rules miss the bill by %.1f %%)\n",
		share(*t.SavedWithout, t.Without.Units), share(*t.SavedCompacting, t.Compacting.Units), 100*t.MachineError)
}

func share(part, whole float64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * part / whole
}

func amount(units, usd float64) string {
	if usd == 0 {
		return fmt.Sprintf("%.0f units of fresh input", units)
	}
	return fmt.Sprintf("%.0f units of fresh input (%.4f USD at list prices)", units, usd)
}

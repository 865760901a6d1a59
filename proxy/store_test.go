package proxy_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func nothing(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"id":"m","type":"message","role":"assistant","content":[],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`))
}

// logged returns all that a store has of the proxy's lanes.
func logged(t *testing.T, db *memstore.Store) (out []string) {
	t.Helper()
	refs, err := db.Scan(context.Background(), store.Scan{Index: "proxy.used", Group: "all", Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, ref := range refs {
		snap, err := db.Read(context.Background(), ref.Thread, store.Query{
			Cells: []store.Range{store.One("proxy.lane", "state")}, Entries: []store.Span{{Log: "message", From: 1, Limit: 1000}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(snap.Entries) == 0 {
			t.Error("the log is empty")
		}
		state, ok := snap.Cell("proxy.lane", "state")
		if !ok {
			t.Error("the lane is not there")
		}
		out = append(out, string(state))
		for _, e := range snap.Entries {
			out = append(out, string(e.Data))
		}
	}
	if len(out) == 0 {
		t.Error("nothing is stored")
	}
	return out
}

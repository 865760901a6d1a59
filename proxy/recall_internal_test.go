package proxy

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

// Recall returns what the compaction of this conversation replaces, and nothing else that is in the store, whatever handle a model writes (F23);
// what plugins took out of it later stays out.
func TestRecall_foreign(t *testing.T) {
	t.Parallel()
	s, err := New(t.Context(), Config{Store: memstore.New()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) }) // behind the lanes' Unlock, for which it waits
	lanes := map[string]*exchange{}
	for _, name := range []string{"mine", "theirs"} {
		r, err := wire.Parse(wire.Messages, []byte(`{"model":"m","messages":[{"role":"user","content":"0"},{"role":"assistant","content":"1"},{"role":"user","content":"2"},{"role":"assistant","content":"3"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		ln, _ := s.lanes.Find(t.Context(), &lane.Key{Session: name, Kind: lane.Main}, r, false)
		for i := range 4 {
			ln.Messages = append(ln.Messages, []abi.Message{{ID: fmt.Sprint("i", i), Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("%s %d", name, i))}}})
		}
		ln.Swap = &lane.Swap{From: 0, To: 3}
		if err := s.lanes.Save(t.Context(), ln); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(ln.Unlock)
		lanes[name] = &exchange{s: s, ln: ln}
	}
	x := lanes["mine"]
	ask := func(handle string) verdict {
		return x.recall(t.Context(), abi.ToolCall{ID: "c", Arguments: map[string]any{"handle": handle}})
	}
	if v := ask("h0-0-2"); v.failed || !strings.Contains(v.result, "mine 0") || !strings.Contains(v.result, "mine 2") || strings.Contains(v.result, "mine 3") || strings.Contains(v.result, "theirs") {
		t.Errorf("%+v", v)
	}
	for _, handle := range []string{"h0-0-3", "h0-0-99", "h1-0-2", "h0--9-2", lanes["theirs"].ln.ID, "", "h0-0", "e0/i1"} {
		if v := ask(handle); !v.failed || strings.Contains(v.result, "mine") || strings.Contains(v.result, "theirs") {
			t.Errorf("%q: %+v", handle, v)
		}
	}
	x.ln.Edits = []lane.Edit{{Item: 1, Block: -1, Value: wire.Quote("***")}}
	if v := ask("h0-0-2"); !strings.Contains(v.result, "***") || strings.Contains(v.result, "mine 1") {
		t.Errorf("%+v", v)
	}
}

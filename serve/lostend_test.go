package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// killed is a store that has what a process leaves which is killed right after the end of a run: of its events the last
// one, which is shared after the end, is lost.
type killed struct{ *memstore.Store }

func (k killed) AppendEvents(ctx context.Context, list ...store.EventBatch) ([]string, error) {
	var kept []store.EventBatch
	for _, b := range list {
		var events []struct {
			Type string `json:"t"`
			Data []byte `json:"d,omitempty"`
		}
		if err := json.Unmarshal(b.Data, &events); err != nil {
			return nil, err
		}
		for i, e := range events {
			if e.Type == "run_finish" {
				events = events[:i]
				break
			}
		}
		if len(events) == 0 {
			continue
		}
		b.Last = b.First + uint64(len(events)) - 1
		b.Data, _ = json.Marshal(events) //nolint:errchkjson // it was JSON
		kept = append(kept, b)
	}
	return k.Store.AppendEvents(ctx, kept...)
}

// TestLostEnd: a stream whose last event is lost has it all the same, once, wherever a client continues; it reports where
// the run stands.
func TestLostEnd(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct{ end, status string }{
		"say some words": {"run_ended settled", "done"},
		"ask":            {"run_waiting", "waiting"},
	} {
		broken := killed{memstore.New()}
		w := newWorld(t, options{store: broken})
		run := w.submit("/v1/threads/t/runs", say(text)).Run
		name, _, _ := strings.Cut(want.end, " ")
		w.follow(run, "").until(name) // by the process that ran it
		other := newWorld(t, options{store: broken, idle: true})
		list := other.follow(run, "").until(name)
		if want.status == "done" {
			list = append(list, other.follow(run, list[len(list)-1].id).rest()...)
		}
		if got := told(list); !strings.HasSuffix(got, want.end) || strings.Count(got, name) != 1 {
			t.Errorf("%s: the stream is %s", text, got)
		}
		var end struct {
			ID      string
			Outcome struct {
				Status   string
				Response string
				Tickets  []struct{ ID string }
			}
		}
		at := len(list) - len(strings.Fields(want.end))
		must(t, json.NewDecoder(bytes.NewBufferString(list[at].data)).Decode(&end))
		if end.Outcome.Status != want.status || (len(end.Outcome.Tickets) == 1) != (name == "run_waiting") || (end.Outcome.Response == "somewords") != (name == "run_ended") {
			t.Errorf("%s: it ends with %s", text, list[at].data)
		}
		before := other.follow(run, list[at-1].id)
		if e, _ := before.next(); e != list[at] {
			t.Errorf("%s: after %s comes %+v, want %+v", text, list[at-1].id, e, list[at])
		}
		before.close()
		if want.status == "done" {
			must(t, broken.PurgeEvents(t.Context(), time.Now().Add(time.Hour)))
			if again := newWorld(t, options{store: broken, idle: true}).follow(run, list[at].id).rest(); told(again) != "settled" {
				t.Errorf("%s: when no event is kept any more, after the end comes %s", text, told(again))
			}
			other.want(http.StatusNoContent, http.MethodGet, "/v1/runs/"+run+"/events", "", "Last-Event-ID", list[at+1].id)
		}
	}
}

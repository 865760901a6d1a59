package serve_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// entry is a run of a list.
type entry struct {
	ID      string
	Status  string
	Wait    string
	Until   *time.Time `json:"wait_until"`
	Steps   int
	Usage   abi.Usage
	Cost    float64
	Tickets []struct{ ID, Tool, Message string }
}

// listed waits until a list of one run is as it should be.
func (w *world) listed(query, what string, ok func(entry) bool) entry {
	w.t.Helper()
	var page struct{ Runs []entry }
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		page.Runs = nil
		w.want(http.StatusOK, http.MethodGet, "/v1/runs?"+query, "").decode(w.t, &page)
		if len(page.Runs) == 1 && ok(page.Runs[0]) {
			return page.Runs[0]
		}
	}
	w.t.Fatalf("%s: the list has %+v", what, page.Runs)
	return entry{}
}

// TestLists_totals: a list has what runs have used, what they wait for and which calls ask.
func TestLists_totals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{runtime: func(c *mortise.Config) {
		a := c.Agents["a"]
		a.Cost = func(_ string, u abi.Usage) float64 { return float64(u.CompletionTokens) / 2 }
		c.Agents["a"] = a
	}})
	w.submit("/v1/threads/bill/runs", say("bill me"))
	w.listed("thread=bill", "the bill", func(e entry) bool {
		return e.Status == "done" && e.Steps == 1 && e.Usage.PromptTokens == 100 && e.Usage.CacheReadTokens == 60 && e.Usage.CompletionTokens == 7 && e.Cost == 3.5
	})
	asks := w.submit("/v1/threads/asks/runs", say("ask me"))
	e := w.listed("wait=tool_permission", "what asks", func(e entry) bool { return e.ID == asks.Run })
	if len(e.Tickets) != 1 || e.Tickets[0].ID != "ticket" || e.Tickets[0].Tool != "ask" || e.Status != "waiting" {
		t.Errorf("the run is %+v", e)
	}
	w.want(http.StatusOK, http.MethodPost, "/v1/runs/"+asks.Run+"/decisions", `{"decisions":[{"target":"ticket","action":"allow","result":1}]}`)
	w.follow(asks.Run, "").until("settled")
	w.listed("thread=asks", "after the decision", func(e entry) bool { return e.Status == "done" && len(e.Tickets) == 0 && e.Wait == "" })
}

// TestRateLimit: a provider that asks for an hour costs no attempt, and the run waits for it.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	id := w.submit("/v1/threads/t/runs", say("limited word"))
	e := w.listed("wait=rate_limit", "what waits for the provider", func(e entry) bool { return e.ID == id.Run })
	if e.Until == nil || time.Until(*e.Until) < 50*time.Minute {
		t.Errorf("it waits until %v", e.Until)
	}
	var run struct{ Attempts int }
	w.want(http.StatusOK, http.MethodGet, "/v1/runs/"+id.Run, "").decode(t, &run)
	if run.Attempts != 0 {
		t.Errorf("it has %d attempts", run.Attempts)
	}
}

// TestPause: a thread that is paused gives its run back at once and continues it when it is resumed; a queue that is paused begins none.
func TestPause(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{runtime: func(c *mortise.Config) { c.Mailbox.Poll = 20 * time.Millisecond }})
	id := w.submit("/v1/threads/t/runs", say("hold on"))
	<-w.mind.begun
	var v struct {
		Paused *time.Time `json:"paused_at"`
	}
	w.want(http.StatusOK, http.MethodPost, "/v1/threads/t/pause", "").decode(t, &v)
	if v.Paused == nil {
		t.Error("the thread has no time of its pause")
	}
	w.listed("wait=manual_pause", "what is paused", func(e entry) bool { return e.ID == id.Run })
	w.refused(http.StatusConflict, http.MethodPost, "/v1/threads/t/runs", `{"input":"say no","mode":"foreground"}`)
	w.refused(http.StatusNotFound, http.MethodPost, "/v1/threads/none/pause", "")
	w.want(http.StatusOK, http.MethodPost, "/v1/threads/t/resume", "").decode(t, &v)
	<-w.mind.begun
	close(w.mind.release)
	w.follow(id.Run, "").until("settled")

	var status struct {
		Paused  bool
		Tenants []string `json:"paused_tenants"`
	}
	w.want(http.StatusOK, http.MethodPost, "/v1/pause", `{"tenant":"acme"}`)
	w.want(http.StatusOK, http.MethodPost, "/v1/pause", `{}`)
	w.want(http.StatusOK, http.MethodGet, "/v1/status", "").decode(t, &status)
	if !status.Paused || len(status.Tenants) != 1 || status.Tenants[0] != "acme" {
		t.Errorf("the status is %+v", status)
	}
	late := w.submit("/v1/threads/u/runs", say("say hi"))
	w.listed("status=created", "what is queued", func(e entry) bool { return e.ID == late.Run })
	w.want(http.StatusOK, http.MethodPost, "/v1/resume", `{}`)
	w.follow(late.Run, "").until("settled")
}

// TestBatch: many runs at once, each accepted or refused by itself, and once under its key.
func TestBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{})
	body := `{"runs":[{"thread_id":"t","run":{"input":"say one","idempotency_key":"k"}},{"run":{"input":"say two"}},
		{"run":{"input":"say three","agent":"none"}},{"run":{"input":"say four","mode":"live"}}]}`
	var first, again struct {
		Runs []struct {
			Run      string `json:"run_id"`
			Thread   string `json:"thread_id"`
			Repeated bool
			Error    *problem
		}
	}
	w.want(http.StatusAccepted, http.MethodPost, "/v1/runs/batch", body).decode(t, &first)
	w.want(http.StatusAccepted, http.MethodPost, "/v1/runs/batch", body).decode(t, &again)
	if len(first.Runs) != 4 || first.Runs[0].Thread != "t" || first.Runs[0].Run != again.Runs[0].Run || !again.Runs[0].Repeated || first.Runs[1].Run == again.Runs[1].Run {
		t.Errorf("first %+v, again %+v", first, again)
	}
	for i, want := range map[int]string{2: "body.runs[2].run.agent", 3: "body.runs[3].run.mode"} {
		if p := first.Runs[i].Error; p == nil || p.Field != want {
			t.Errorf("request %d has the problem %+v, want one of %s", i, p, want)
		}
	}
	w.follow(first.Runs[0].Run, "").until("settled")
	w.follow(first.Runs[1].Run, "").until("settled")
	w.refused(http.StatusUnprocessableEntity, http.MethodPost, "/v1/runs/batch", `{"runs":[]}`)
}

// TestTimeLimit: an execution that takes longer than its request allows fails, and its run ends after the last attempt.
func TestTimeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, options{runtime: func(c *mortise.Config) { c.Mailbox.Retry.Attempts, c.Mailbox.Retry.Delay = 2, time.Millisecond }})
	id := w.submit("/v1/threads/t/runs", `{"input":"hold on","timeout_seconds":0.05}`)
	w.follow(id.Run, "").until("settled")
	var run struct {
		Status, Termination string
		LastError           string `json:"last_error"`
		Attempts            int
	}
	w.want(http.StatusOK, http.MethodGet, "/v1/runs/"+id.Run, "").decode(t, &run)
	if run.Status != "done" || run.Termination != "error" || run.Attempts != 2 || !strings.Contains(run.LastError, "longer than its request allows") {
		t.Errorf("the run is %+v", run)
	}
}

// outage is a store that can be out of order.
type outage struct {
	*memstore.Store
	down atomic.Bool
}

func (o *outage) Health(context.Context) error {
	if o.down.Load() {
		return errors.New("connection refused by db.internal")
	}
	return nil
}

func (o *outage) Read(ctx context.Context, thread string, q store.Query) (store.Snapshot, error) {
	if err := o.Health(ctx); err != nil {
		return store.Snapshot{}, err
	}
	return o.Store.Read(ctx, thread, q)
}

// TestStoreDown: a store that is down is reported by /readyz, the status and submissions, without its address, and all is well when it is back.
func TestStoreDown(t *testing.T) {
	t.Parallel()
	o := &outage{Store: memstore.New()}
	w := newWorld(t, options{store: o, runtime: func(c *mortise.Config) { c.Mailbox.Poll = 10 * time.Millisecond }})
	o.down.Store(true)
	p := w.refused(http.StatusServiceUnavailable, http.MethodPost, "/v1/runs", say("say hi"))
	if !strings.Contains(p.Hint, "changed nothing") {
		t.Errorf("the hint is %q", p.Hint)
	}
	for end := time.Now().Add(5 * time.Second); w.do(http.MethodGet, "/readyz", "").StatusCode == http.StatusOK; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server says that it is ready")
		}
	}
	var status struct {
		Error string `json:"store_error"`
	}
	a := w.want(http.StatusOK, http.MethodGet, "/v1/status", "")
	a.decode(t, &status)
	if !strings.Contains(status.Error, "the store cannot be used since ") || strings.Contains(status.Error, "db.internal") {
		t.Errorf("the status has %q", status.Error)
	}
	o.down.Store(false)
	for end := time.Now().Add(5 * time.Second); w.do(http.MethodGet, "/readyz", "").StatusCode != http.StatusOK; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the server is not ready again")
		}
	}
	id := w.submit("/v1/runs", say("say hi"))
	w.follow(id.Run, "").until("settled")
}

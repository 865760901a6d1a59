package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// size is how much a test does: MORTISE_E2E=full is what make e2e runs.
type size struct{ runs, clients, kills int }

func sizeOf() size {
	if os.Getenv("MORTISE_E2E") == "full" {
		return size{runs: 300, clients: 16, kills: 50}
	}
	return size{runs: 24, clients: 6, kills: 3}
}

// threads is how many threads the runs are spread over.
const threads = 6

// run is what a client learned of one.
type run struct {
	ID     string    `json:"id"`
	Thread string    `json:"thread_id"`
	Status string    `json:"status"`
	Output string    `json:"output"`
	Error  string    `json:"error"`
	Usage  abi.Usage `json:"usage"`
	Cost   float64   `json:"cost"`

	task   string
	events []event
}

// TestServe_killed: clients submit runs, lose connections and come back, while the server is killed
// again and again. Every acknowledged run ends once with its answer, the streams are complete and in order, no tool is
// executed twice, compactions are swapped in, and nothing is billed that no run counts, but for what a kill cut off.
func TestServe_killed(t *testing.T) {
	t.Parallel()
	w, n := newWorld(t), sizeOf()
	w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	over := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for range n.kills {
			select {
			case <-over:
				return
			case <-time.After(time.Duration(200+rand.IntN(800)) * time.Millisecond):
			}
			w.kill()
			w.start(t)
		}
	})
	runs := w.ask(ctx, t, n)
	close(over)
	killer.Wait()
	checkRuns(t, runs, n.runs, n.kills)
	w.checkTools(t, n.runs)
	w.checkBills(t, runs, n.kills)
	w.checkThreads(ctx, t, n.runs)
	w.stop(t)
}

// TestServe_bills: without a kill, usage and cost of the runs are what the provider billed.
func TestServe_bills(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n := size{runs: 8, clients: 4}
	runs := w.ask(ctx, t, n)
	checkRuns(t, runs, n.runs, 0)
	w.checkBills(t, runs, 0)
	w.stop(t)
}

// ask submits runs from several clients at once, follows each to its end, and reads what became of it.
func (w *world) ask(ctx context.Context, t *testing.T, n size) []*run {
	t.Helper()
	tasks := make(chan int)
	var mu sync.Mutex
	var out []*run
	var clients sync.WaitGroup
	for range n.clients {
		clients.Go(func() {
			c := &client{w: w, http: &http.Client{Transport: &http.Transport{}}}
			defer c.http.CloseIdleConnections()
			for i := range tasks {
				r, err := c.run(ctx, i)
				if err != nil {
					t.Errorf("task %d: %v; the server: %s", i, err, w.said())
					continue
				}
				mu.Lock()
				out = append(out, r)
				mu.Unlock()
			}
		})
	}
	for i := range n.runs {
		tasks <- i
	}
	close(tasks)
	clients.Wait()
	return out
}

// run submits one task, follows it, and reads the run.
func (c *client) run(ctx context.Context, i int) (*run, error) {
	task := fmt.Sprintf("task-%d", i)
	body := map[string]any{"input": "Please do " + task + " now.", "idempotency_key": task}
	status, data, err := c.call(ctx, false, http.MethodPost, fmt.Sprintf("/v1/threads/t%d/runs", i%threads), body)
	if err != nil || status != http.StatusAccepted {
		return nil, fmt.Errorf("submit: %d %s %w", status, data, err)
	}
	var sub struct {
		RunID string `json:"run_id"`
	}
	if err := json.Unmarshal(data, &sub); err != nil {
		return nil, err
	}
	r := &run{}
	events, err := c.follow(ctx, sub.RunID)
	if err != nil {
		return nil, fmt.Errorf("follow %s: %w", sub.RunID, err)
	}
	status, data, err = c.call(ctx, false, http.MethodGet, "/v1/runs/"+sub.RunID, nil)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("run: %d %s %w", status, data, err)
	}
	err = json.Unmarshal(data, r)
	r.task, r.events = task, events
	return r, err
}

// checkRuns: each run ended once with its answer. A kill right after the end of a run may cost its event run_ended, which was
// not yet written; settled has the outcome.
func checkRuns(t *testing.T, runs []*run, want, kills int) {
	t.Helper()
	ids, unended := map[string]bool{}, 0
	for _, r := range runs {
		ids[r.ID] = true
		if r.Status != "done" || r.Error != "" || !strings.HasSuffix(r.Output, "done "+r.task) {
			t.Errorf("%s: %s %q %s", r.task, r.Status, r.Output, r.Error)
		}
		if !checkStream(t, r) {
			unended++
		}
	}
	if unended > kills {
		t.Errorf("%d streams have no run_ended after %d kills", unended, kills)
	}
	if len(ids) != want {
		t.Errorf("%d runs, want %d", len(ids), want)
	}
}

// checkStream: ids grow, nothing comes twice, and settled is last and once.
func checkStream(t *testing.T, r *run) (ended bool) {
	t.Helper()
	var dispatch, seq uint64
	names := map[string]int{}
	for _, e := range r.events {
		d, s := e.place()
		if d < dispatch || d == dispatch && s <= seq {
			t.Errorf("%s: event %s %s follows %d-%d", r.task, e.id, e.name, dispatch, seq)
		}
		dispatch, seq = d, s
		names[e.name]++
	}
	if names["settled"] != 1 || names["run_started"] == 0 {
		t.Errorf("%s: the events are %v", r.task, names)
	}
	return names["run_ended"] > 0
}

// checkTools: the tool was executed at most once for each task. One that was interrupted before or in its tool
// tells the model so, and is not executed again.
func (w *world) checkTools(t *testing.T, tasks int) {
	t.Helper()
	data, err := os.ReadFile(w.toolLog())
	must(t, err)
	executed := map[string]int{}
	for line := range strings.Lines(string(data)) {
		executed[strings.TrimSpace(line)]++
	}
	for task, n := range executed {
		if n > 1 {
			t.Errorf("%s was executed %d times", task, n)
		}
	}
	t.Logf("%d tasks, %d executed", tasks, len(executed))
}

// checkBills compares what the runs count with what the provider billed. An inference that a kill cut off is billed and
// in no run: there are at most so many as runs under way at a kill.
func (w *world) checkBills(t *testing.T, runs []*run, kills int) {
	t.Helper()
	var billed, counted abi.Usage
	bills := 0
	for _, b := range w.provider.Bills() {
		billed.PromptTokens += b.Usage.PromptTokens
		billed.CompletionTokens += b.Usage.CompletionTokens
		bills++
	}
	for _, r := range runs {
		counted.PromptTokens += r.Usage.PromptTokens
		counted.CompletionTokens += r.Usage.CompletionTokens
	}
	lost := billed.PromptTokens - counted.PromptTokens
	if lost < 0 || kills == 0 && (lost != 0 || billed.CompletionTokens != counted.CompletionTokens) {
		t.Errorf("billed %+v, counted %+v", billed, counted)
	}
	t.Logf("%d bills, %d of %d prompt tokens were cut off by %d kills", bills, lost, billed.PromptTokens, kills)
}

// checkThreads: each task is in its thread once, and compactions were swapped in.
func (w *world) checkThreads(ctx context.Context, t *testing.T, tasks int) {
	t.Helper()
	c := &client{w: w, http: &http.Client{Transport: &http.Transport{}}}
	defer c.http.CloseIdleConnections()
	asked, compactions := map[string]int{}, 0
	for i := range threads {
		path := "/v1/threads/t" + strconv.Itoa(i)
		for before := 0; ; {
			query := "?limit=50"
			if before > 0 {
				query += "&before=" + strconv.Itoa(before)
			}
			status, data, err := c.call(ctx, false, http.MethodGet, path+"/messages"+query, nil)
			if err != nil || status != http.StatusOK {
				t.Fatalf("messages: %d %s %v", status, data, err)
			}
			var page struct {
				Messages []struct{ Message abi.Message }
				Before   int
			}
			must(t, json.Unmarshal(data, &page))
			for _, m := range page.Messages {
				if m.Message.Role == abi.RoleUser {
					asked[m.Message.Text()]++
				}
			}
			if before = page.Before; before == 0 {
				break
			}
		}
		status, data, err := c.call(ctx, false, http.MethodGet, path+"/compactions", nil)
		if err != nil || status != http.StatusOK {
			t.Fatalf("compactions: %d %s %v", status, data, err)
		}
		var kept struct{ Total int }
		must(t, json.Unmarshal(data, &kept))
		compactions += kept.Total
	}
	for i := range tasks {
		if text := fmt.Sprintf("Please do task-%d now.", i); asked[text] != 1 {
			t.Errorf("%q is %d times in its thread", text, asked[text])
		}
	}
	if compactions == 0 {
		t.Errorf("no compaction was swapped in: %s", w.said())
	}
	t.Logf("%d compactions", compactions)
}

// TestServe_swap: an operator swaps a policy while the server runs. What cannot take over is refused, the one in use
// stays, and a roll-back returns to the module before.
func TestServe_swap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := &client{w: w, http: &http.Client{Transport: &http.Transport{}}}
	defer c.http.CloseIdleConnections()
	next, err := os.ReadFile(filepath.Join("..", "..", "testdata", "guests", "summarizers.wasm"))
	must(t, err)
	next = append(next, 0, 5, 4, 'n', 'o', 't', 'e') // an empty custom section: another module that does the same
	for _, step := range []struct {
		method, path, want string
		body               []byte
		status             int
	}{
		{http.MethodPut, "/v1/policies/summarizer", "", []byte("no module"), http.StatusUnprocessableEntity},
		{http.MethodPost, "/v1/policies/summarizer/rollback", "not swapped", nil, http.StatusUnprocessableEntity},
		{http.MethodPut, "/v1/policies/summarizer", `"to"`, next, http.StatusOK},
		{http.MethodPost, "/v1/policies/summarizer/rollback", `"to"`, nil, http.StatusOK},
		{http.MethodPost, "/v1/policies/summarizer/rollback", "not swapped", nil, http.StatusUnprocessableEntity},
		{http.MethodGet, "/v1/policies/summarizer/history", "rolled_back", nil, http.StatusOK},
		{http.MethodPut, "/v1/plugins/nothing", "", next, http.StatusNotFound},
		{http.MethodGet, "/metrics", "mortise_", nil, http.StatusOK},
		{http.MethodGet, "/readyz", "", nil, http.StatusOK},
	} {
		status, data, err := c.once(ctx, true, step.method, step.path, step.body)
		must(t, err)
		if status != step.status || !strings.Contains(string(data), step.want) {
			t.Errorf("%s %s: %d %.500s", step.method, step.path, status, data)
		}
	}
	w.stop(t)
}

package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// size is how much a test does, over how many threads its runs are spread, and how often servers are killed, or stopped. MORTISE_E2E=full
// is what make e2e runs.
type size struct{ runs, clients, threads, kills, stops int }

// run is what a client learned of one.
type run struct {
	ID     string    `json:"id"`
	Thread string    `json:"thread_id"`
	Status string    `json:"status"`
	Output string    `json:"output"`
	Error  string    `json:"error"`
	Usage  abi.Usage `json:"usage"`
	Cost   float64   `json:"cost"`
	Steps  int       `json:"steps"`

	task   string
	events []event
}

// TestServe_killed: clients submit runs, lose connections and come back, while the servers are killed
// again and again. Every acknowledged run ends once with its answer, the streams are complete and in order, no tool is
// executed twice, a call that was interrupted is marked, compactions are swapped in, and nothing is billed that no run counts, but for
// what a kill cut off.
func TestServe_killed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name      string
		processes int
		size      size
		full      size
		store     func(*testing.T) string
	}{
		{"SQLite", 1, size{24, 6, 6, 3, 0}, size{300, 16, 6, 50, 0}, func(*testing.T) string { return "" }},
		{"PostgreSQL", 2, size{15, 5, 3, 2, 0}, size{300, 16, 6, 10, 0}, postgres},
		{"NATS", 3, size{15, 5, 3, 2, 0}, size{300, 16, 6, 10, 0}, jetstream},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.processes > 1 {
				testskip.Long(t)
			}
			n := c.size
			if os.Getenv("MORTISE_E2E") == "full" {
				n = c.full
			}
			w := newWorldWith(t, options{config, reply, c.store(t), c.processes})
			w.start(t)
			w.killed(t, n)
		})
	}
}

// killed asks while servers are killed, and checks what came of it.
func (w *world) killed(t *testing.T, n size) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(n.runs)*2*time.Second)
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
			p := w.procs[rand.IntN(len(w.procs))]
			w.kill(p)
			w.launch(t, p)
		}
	})
	runs := w.ask(ctx, t, n)
	close(over)
	killer.Wait()
	checkRuns(t, runs, n.runs)
	w.checkBills(t, runs, n)
	w.checkThreads(t, n)
	w.checkLists(t, runs, n)
	w.stop(t)
}

// TestServe_terminated: a server gets SIGTERM while twenty runs are under way, and another follows. Those that it
// cuts off are continued by the other, and each run ends once.
func TestServe_terminated(t *testing.T) {
	t.Parallel()
	n := size{runs: 40, clients: 20, threads: 20, stops: 1}
	all := make(chan struct{}) // are under way: the model answers no request before
	w := newWorldOf(t, strings.NewReplacer("workers: 8", "workers: 24", "grace: 10s", "grace: 100ms", "lease: 2s", "lease: 30s").Replace(config), func(q providertest.Query) providertest.Answer {
		<-all
		a := reply(q)
		a.Pace = 10 * time.Millisecond
		return a
	})
	w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var operator sync.WaitGroup
	operator.Go(func() {
		for w.executing(ctx, t) < n.clients && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		close(all)
		w.stop(t)
		w.launch(t, w.procs[0])
	})
	runs := w.ask(ctx, t, n)
	operator.Wait()
	checkRuns(t, runs, n.runs)
	cut := 0
	for _, r := range runs {
		cut += count(r.events, "run_interrupted")
	}
	if cut == 0 {
		t.Errorf("no run was cut off: %s", w.said())
	}
	t.Logf("%d runs were cut off", cut)
	w.checkBills(t, runs, n)
	w.checkThreads(t, n)
	w.stop(t)
}

// count is how many events have a name.
func count(list []event, name string) (n int) {
	for i := range list {
		if list[i].name == name {
			n++
		}
	}
	return n
}

// executing is how many runs the server executes.
func (w *world) executing(ctx context.Context, t *testing.T) int {
	t.Helper()
	c := &client{w: w, http: http.DefaultClient}
	code, data, err := c.call(ctx, true, http.MethodGet, "/v1/status", nil)
	var status struct{ Executing int }
	if err != nil || code != http.StatusOK || json.Unmarshal(data, &status) != nil {
		t.Errorf("status: %d %s %v", code, data, err)
	}
	return status.Executing
}

// postgres is the URL of a server of PostgreSQL.
func postgres(t *testing.T) string {
	t.Helper()
	s, err := pgtest.Loopback(t.Context(), nil, nil)
	pgtest.Need(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s.LoopbackURL(nil)
}

// jetstream is the URL of a server of NATS.
func jetstream(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 1 << 20,
	})
	must(t, err)
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("NATS did not start")
	}
	return "nats://" + s.Addr().String() + "/runs"
}

// TestServe_bills: without a kill, usage and cost of the runs are what the provider billed.
func TestServe_bills(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	w := newWorldOf(t, strings.Replace(config, "lease: 2s", "lease: 30s", 1), reply)
	w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	n := size{runs: 8, clients: 4, threads: 4}
	runs := w.ask(ctx, t, n)
	checkRuns(t, runs, n.runs)
	w.checkBills(t, runs, n)
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
				r, err := c.run(ctx, i, i%n.threads)
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
func (c *client) run(ctx context.Context, i, thread int) (*run, error) {
	task := fmt.Sprintf("task-%d", i)
	body := map[string]any{"input": "Please do " + task + " now.", "idempotency_key": task}
	status, data, err := c.call(ctx, false, http.MethodPost, fmt.Sprintf("/v1/threads/t%d/runs", thread), body)
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
		fresh, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		_, data, _ = c.once(fresh, false, http.MethodGet, "/v1/runs/"+sub.RunID, nil)
		return nil, fmt.Errorf("follow %s: %w; the run is %s", sub.RunID, err, data)
	}
	status, data, err = c.call(ctx, false, http.MethodGet, "/v1/runs/"+sub.RunID, nil)
	if err != nil || status != http.StatusOK {
		return nil, fmt.Errorf("run: %d %s %w", status, data, err)
	}
	err = json.Unmarshal(data, r)
	r.task, r.events = task, events
	return r, err
}

// checkRuns: each run ended once with its answer.
func checkRuns(t *testing.T, runs []*run, want int) {
	t.Helper()
	ids := map[string]bool{}
	for _, r := range runs {
		ids[r.ID] = true
		if r.Status != "done" || r.Error != "" || !strings.HasSuffix(r.Output, "done "+r.task) {
			t.Errorf("%s: %s %q %s", r.task, r.Status, r.Output, r.Error)
		}
		checkStream(t, r)
	}
	if len(ids) != want {
		t.Errorf("%d runs, want %d", len(ids), want)
	}
}

// checkStream: ids grow, nothing comes twice, the last answer is whole, each attempt ends once, and settled is last and once. An event of a
// step that is cut off does not count: run_started of the process that takes the run over names the step that was the last to be answered.
func checkStream(t *testing.T, r *run) {
	t.Helper()
	var dispatch, seq uint64
	names, text, ended, step := map[string]int{}, "", "", 0.0
	for _, e := range r.events {
		d, s := e.place()
		if d < dispatch || d == dispatch && s <= seq {
			t.Errorf("%s: event %s %s follows %d-%d", r.task, e.id, e.name, dispatch, seq)
		}
		dispatch, seq = d, s
		names[e.name]++
		switch e.name {
		case "step_started":
			step, _ = e.data["step"].(float64)
			text = ""
		case "stream_reset":
			text = ""
		case "step_ended":
			ended = text
		case "run_started":
			if answered, _ := e.data["step"].(float64); answered < step {
				text = ended
			}
		case "text_delta":
			text += fmt.Sprint(e.data["delta"])
		}
	}
	if names["settled"] != 1 || names["run_ended"] < 1 || names["run_ended"] > 1+names["attempt_failed"] || names["run_started"] == 0 || names["gap"] != 0 {
		t.Errorf("%s: the events are %v", r.task, names)
	}
	if text != r.Output {
		t.Errorf("%s: the stream says %q, the run %q; the events are %s", r.task, text, r.Output, outline(r.events))
	}
}

// outline is the last events of a stream by id and name, without the text.
func outline(list []event) string {
	var b strings.Builder
	deltas := 0
	for i, e := range list {
		if e.name == "text_delta" && i+1 < len(list) && list[i+1].name == "text_delta" {
			deltas++
			continue
		}
		fmt.Fprintf(&b, " %s %s", e.id, e.name)
		if deltas > 0 {
			fmt.Fprintf(&b, " (%d before)", deltas)
		}
		deltas = 0
	}
	text := b.String()
	return text[max(0, len(text)-3000):]
}

// checkBills compares what the runs count with what the provider billed. An inference that was cut off is billed and no step: at a kill or a
// stop each thread has one at most. What a kill cut off is in no run; what a stop cut off is counted as far as it had come.
func (w *world) checkBills(t *testing.T, runs []*run, n size) {
	t.Helper()
	var billed, counted abi.Usage
	bills, steps := 0, 0
	for _, b := range w.provider.Bills() {
		billed.PromptTokens += b.Usage.PromptTokens
		billed.CompletionTokens += b.Usage.CompletionTokens
		bills++
	}
	for _, r := range runs {
		counted.PromptTokens += r.Usage.PromptTokens
		counted.CompletionTokens += r.Usage.CompletionTokens
		steps += r.Steps
	}
	lost := billed.PromptTokens - counted.PromptTokens
	if lost < 0 || bills-steps < 0 || bills-steps > max(n.kills, n.stops)*n.threads || billed.CompletionTokens < counted.CompletionTokens ||
		max(n.kills, n.stops) == 0 && (lost != 0 || billed.CompletionTokens != counted.CompletionTokens) {
		t.Errorf("%d inferences were billed and %d counted, with %d kills: billed %+v, counted %+v", bills, steps, n.kills, billed, counted)
	}
	t.Logf("%d of %d inferences and %d of %d prompt tokens were cut off by %d kills", bills-steps, bills, lost, billed.PromptTokens, n.kills)
}

// checkThreads: each task is in its thread once, each of its calls was answered once, by the tool or with the word that it was
// interrupted, no task was executed twice, and compactions were swapped in.
func (w *world) checkThreads(t *testing.T, n size) {
	t.Helper()
	ctx := t.Context()
	c := &client{w: w, http: &http.Client{Transport: &http.Transport{}}}
	defer c.http.CloseIdleConnections()
	told, started := w.told(ctx, t, c, n.threads)
	asked, worked, marked, compactions := map[string]int{}, map[string]int{}, map[string]int{}, 0
	for i := range n.threads {
		path := "/v1/threads/t" + strconv.Itoa(i)
		list, err := c.messages(ctx, path)
		must(t, err)
		task := map[string]string{} // by call
		for _, m := range list {
			for _, call := range m.ToolCalls {
				arguments, _ := call.Arguments.(map[string]any)
				task[call.ID] = fmt.Sprint(arguments["task"])
			}
			text := m.Text()
			switch {
			case m.Role == abi.RoleUser:
				asked[text]++
			case m.Role == abi.RoleTool && began.MatchString(text):
			case m.Role == abi.RoleTool && strings.HasPrefix(text, "worked on "+task[m.ToolCallID]+","):
				worked[task[m.ToolCallID]]++
			case m.Role == abi.RoleTool && strings.Contains(text, "interrupted"):
				marked[task[m.ToolCallID]]++
			case m.Role == abi.RoleTool:
				t.Errorf("call %s of %s: %q", m.ToolCallID, task[m.ToolCallID], text)
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
	executed := w.executed(t)
	for i := range n.runs {
		task := fmt.Sprintf("task-%d", i)
		if text := "Please do " + task + " now."; asked[text] != 1 {
			t.Errorf("%q is %d times in its thread", text, asked[text])
		}
		if executed[task] > 1 || worked[task] > executed[task] || worked[task]+marked[task] == 0 || executed[task] > worked[task]+marked[task] {
			t.Errorf("%s was executed %d times; %d results are in its thread, and %d calls are marked as interrupted", task, executed[task], worked[task], marked[task])
			w.logShown(t, task)
		}
	}
	for id, n := range told {
		if n != 1 {
			t.Errorf("the end of background task %s is %d times in its thread", id, n)
		}
	}
	if compactions == 0 {
		t.Errorf("no compaction was swapped in: %s", w.said())
	}
	if started == 0 {
		t.Error("no background task was started")
	}
	t.Logf("%d tasks, %d executed, %d marked as interrupted, %d compactions, %d background tasks", n.runs, len(executed), len(marked), compactions, started)
}

// told is how often the threads were notified of the end of each background task, and how many there are. What a killed server
// leaves is reported by the one that takes over, which may be after the last run: it waits for a minute until each is reported.
func (w *world) told(ctx context.Context, t *testing.T, c *client, threads int) (told map[string]int, started int) {
	t.Helper()
	for until := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		told, started = map[string]int{}, 0
		for i := range threads {
			list, err := c.messages(ctx, "/v1/threads/t"+strconv.Itoa(i))
			must(t, err)
			for _, m := range list {
				if found := began.FindStringSubmatch(m.Text()); found != nil && m.Role == abi.RoleTool {
					told[found[1]] += 0
					started++
				}
				for _, found := range ended.FindAllStringSubmatch(m.Text(), -1) {
					told[found[1]]++
				}
			}
		}
		if missing := slices.Contains(slices.Collect(maps.Values(told)), 0); !missing || time.Now().After(until) {
			return told, started
		}
	}
}

// began and ended find the ids of background tasks in what the model reads.
var (
	began = regexp.MustCompile(`^Started as background task ([^ .]+)\.`)
	ended = regexp.MustCompile(`^<background-task-event kind="(?:completed|failed|cancelled)" task_id="([^"]+)"`)
)

// executed is how often each task was.
func (w *world) executed(t *testing.T) map[string]int {
	t.Helper()
	data, err := os.ReadFile(w.toolLog())
	must(t, err)
	out := map[string]int{}
	for line := range strings.Lines(string(data)) {
		out[strings.TrimSpace(line)]++
	}
	return out
}

// messages are all of a thread.
func (c *client) messages(ctx context.Context, thread string) (out []abi.Message, err error) {
	for before := 0; ; {
		query := "?limit=50"
		if before > 0 {
			query += "&before=" + strconv.Itoa(before)
		}
		status, data, err := c.call(ctx, false, http.MethodGet, thread+"/messages"+query, nil)
		if err != nil || status != http.StatusOK {
			return nil, fmt.Errorf("messages: %d %s %w", status, data, err)
		}
		var page struct {
			Messages []struct{ Message abi.Message }
			Before   int
		}
		if err := json.Unmarshal(data, &page); err != nil {
			return nil, err
		}
		var list []abi.Message
		for _, m := range page.Messages {
			list = append(list, m.Message)
		}
		out = append(list, out...)
		if before = page.Before; before == 0 {
			return out, nil
		}
	}
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

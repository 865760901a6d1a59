package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// coder is an agent that works through the proxy: it sends the whole conversation each time, and answers calls with long files.
type coder struct {
	t             *testing.T
	listen, admin string
	messages      []string
	files         int
}

func (c *coder) get(path string, into any) {
	c.t.Helper()
	r, _ := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.admin+path, http.NoBody)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(into); err != nil {
		c.t.Fatal(err)
	}
}

// counts returns what the proxy did, once it does nothing more.
func (c *coder) counts() map[string]int {
	c.t.Helper()
	for {
		var r struct{ Counts map[string]int }
		c.get("/v1/proxy", &r)
		if r.Counts["active"] == 0 && r.Counts["compacting"] == 0 {
			return r.Counts
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-c.t.Context().Done():
			c.t.Fatal("the proxy works still")
		}
	}
}

// turn says something, and executes calls until the model has no more.
func (c *coder) turn(text string) {
	c.t.Helper()
	c.messages = append(c.messages, fmt.Sprintf(`{"role":"user","content":%q}`, text))
	for {
		c.counts() // a model takes seconds, in which compactions end
		a := c.ask()
		for _, item := range a.Items(func(*wire.Out) bool { return true }) {
			c.messages = append(c.messages, string(item))
		}
		if len(a.Calls()) == 0 {
			return
		}
		for _, call := range a.Calls() {
			c.files++
			result := fmt.Sprintf("package p%d // see https://example.com/issues/%d\n%s", c.files, 4000+c.files, strings.Repeat(fmt.Sprintf("func Number%d() {} // of the file\n", c.files), 200)) +
				fmt.Sprintf("error: internal/store/file%d.go:%d: the deadline of 1500 ms is over", c.files, 100+c.files)
			c.messages = append(c.messages, `{"role":"user","content":[`+string(wire.ResultBlock(wire.Messages, &call, result, false))+`]}`)
		}
	}
}

func (c *coder) ask() *wire.Answer {
	c.t.Helper()
	const tools = `[{"name":"bash","input_schema":{"type":"object","properties":{"command":{"type":"string"}}}}]`
	body := `{"model":"claude-sonnet-4-5","max_tokens":3000,"stream":true,"tools":` + tools + `,"messages":[` + strings.Join(c.messages, ",") + `]}`
	r, _ := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.listen+"/v1/messages", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", providertest.DefaultKey)
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("X-Session-Id", "one")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("%s: %v: %s", resp.Status, err, raw)
	}
	s := wire.NewStream(wire.Messages)
	var split wire.Splitter
	_, _ = split.Write(raw)
	for e, ok := split.Next(); ok; e, ok = split.Next() {
		s.Event(e)
	}
	if !s.Done {
		c.t.Fatalf("the answer has no end: %s", raw)
	}
	return &s.Answer
}

// runProxy starts the command on free ports, and returns where it listens and what it writes to standard error.
func runProxy(t *testing.T, config, store string) (cmd *exec.Cmd, listen, admin string, errs *bytes.Buffer) {
	t.Helper()
	cmd, errs = proxyCommand(t, "--config", config, "--store", store, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"), &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		_, err = fmt.Fscanf(out, "proxy %s\nadmin %s\n", &listen, &admin)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, errs)
	}
	return cmd, listen, admin, errs
}

// startProxy runs the command until the test ends, or stop is called.
func startProxy(t *testing.T, config, store string) (listen, admin string, stop func()) {
	t.Helper()
	cmd, listen, admin, errs := runProxy(t, config, store)
	ended := false
	stop = func() {
		if !ended {
			ended = true
			_ = cmd.Process.Signal(os.Interrupt)
			if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
				t.Errorf("%v: %s", err, errs)
			}
		}
	}
	t.Cleanup(stop)
	return listen, admin, stop
}

// A conversation of an agent through the built command, with several compactions, is a thread of the store that the other commands
// work on: explain has its runs with what plugins decided and compactions did, compact show, eval and undo have its messages and
// markers, also while the proxy runs; and the next request of the agent is without what was taken back.
func TestProxy_stored(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	for name, store := range map[string]func(*testing.T) string{
		"sqlite": func(t *testing.T) string { t.Helper(); return filepath.Join(t.TempDir(), "proxy.db") },
		"nats":   jetstream,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storedSession(t, store(t))
		})
	}
}

const standIn = "mortise: summary of the earlier conversation"

func storedSession(t *testing.T, url string) {
	t.Helper()
	const rounds = 6 // of a turn
	var bodies [][]byte
	up, err := providertest.New(providertest.Config{Reply: func(q providertest.Query) providertest.Answer {
		bodies = append(bodies, q.Body)
		if q.N%rounds == 0 {
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("That is done.")}}
		}
		command := fmt.Sprintf("cat file%d.go", q.N)
		if q.N == 2 {
			command = "rm -rf /"
		}
		return providertest.Answer{
			Content: []abi.ContentBlock{abi.Text("next")},
			Calls:   []abi.ToolCall{{ID: fmt.Sprintf("call_%d", q.N), Name: "bash", Arguments: map[string]any{"command": command}}},
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = up.Close() }()
	cfg := config(t, compacting+"proxy: {swap_every: 4, anthropic: {url: \""+up.URL()+"\"}}\n")
	listen, admin, stop := startProxy(t, cfg, url)
	c := &coder{t: t, listen: listen, admin: admin}
	for i := range 6 {
		c.turn(fmt.Sprintf("Task %d: read the files.", i))
	}
	counts := c.counts()
	if counts["swaps"] < 3 || counts["calls_removed"] != 1 || !bytes.Contains(bodies[len(bodies)-1], []byte(standIn)) {
		t.Fatalf("%v", counts)
	}
	stop() // the rest of the records is written

	v := show(t, url).Threads[0]
	swapped := 0
	for _, e := range v.Events {
		if e.Kind == "swapped" {
			swapped++
		}
	}
	if v.State.Total != counts["swaps"] || swapped != counts["swaps"] || len(v.State.Markers) != 1 || v.Messages < len(c.messages)-1 || v.ViewMessages >= v.Messages {
		t.Errorf("shown are %d messages, %d in the view, of %d; %+v of %d swaps", v.Messages, v.ViewMessages, len(c.messages), v.State, counts["swaps"])
	}
	explainedSession(t, url, v.ID)
	if out := must(t, "compact", "eval", "--quiet", "--policies", "ledger", "--chain", "1", url); !strings.Contains(out, "ledger") || !strings.Contains(out, "%") {
		t.Errorf("eval says %s", out)
	}

	// Undone while a proxy runs, the compaction is out of the next request.
	c.listen, c.admin, _ = startProxy(t, cfg, url)
	c.turn("And then?")
	last := bodies[len(bodies)-1]
	if !bytes.Contains(last, []byte(standIn)) || bytes.Contains(last, []byte("func Number1()")) {
		t.Errorf("after a restart the compaction is gone")
	}
	short, undone := len(last), len(bodies)
	if out := must(t, "compact", "undo", url); !strings.Contains(out, leftAfter(0)) {
		t.Errorf("undo says %s", out)
	}
	c.turn("And now?")
	if last = bodies[undone]; bytes.Contains(last, []byte(standIn)) || !bytes.Contains(last, []byte("func Number1()")) || len(last) < 2*short {
		t.Errorf("what was undone is sent still: %d bytes behind %d", len(last), short)
	}
	if now := show(t, url).Threads[0]; now.Messages <= v.Messages || now.ID != v.ID {
		t.Errorf("the thread has %d messages behind %d", now.Messages, v.Messages)
	}
	if failed := failures(up.Bills()); failed > 0 {
		t.Errorf("the provider refused %d requests", failed)
	}
}

func failures(bills []providertest.Bill) (n int) {
	for _, b := range bills {
		if b.Failed {
			n++
		}
	}
	return n
}

// explainedSession checks the records of the runs of a thread.
func explainedSession(t *testing.T, url, thread string) {
	t.Helper()
	var runs struct {
		Runs []struct {
			Run struct {
				RunID string `json:"run_id"`
			}
		}
	}
	if err := json.Unmarshal([]byte(must(t, "explain", "--store", url, "-o", "json")), &runs); err != nil || len(runs.Runs) != 6 {
		t.Fatalf("%d runs: %v", len(runs.Runs), err)
	}
	compactions, blocked := 0, 0
	for _, r := range runs.Runs {
		var e explained
		if err := json.Unmarshal([]byte(must(t, "explain", r.Run.RunID, "--store", url, "-o", "json")), &e); err != nil {
			t.Fatal(err)
		}
		if len(e.Starts) != 1 || e.Starts[0].Run.ThreadID != thread || e.Starts[0].Source != "proxy" || len(e.Ends) != 1 || e.Ends[0].Type != string(abi.TerminationNatural) {
			t.Errorf("%+v", e)
		}
		for _, d := range e.Entries {
			if d.Gate != nil && d.Gate.Action == "block" && d.CallID == "call_2" {
				blocked++
			}
		}
		compactions += strings.Count(must(t, "explain", r.Run.RunID, "--store", url), "swapped")
	}
	if blocked != 1 || compactions < 3 {
		t.Errorf("explained are %d blocked calls and %d compactions", blocked, compactions)
	}
	code, _, _ := mortise(context.WithoutCancel(t.Context()), "", "explain", "none", "--store", url)
	if code != exit.Usage {
		t.Errorf("exit code %d for a run that is not there", code)
	}
}

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/trial"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/serve"
)

const policyConfig = `
version: 1
models:
  main: {provider: anthropic, name: $MODEL, base_url: "$URL", key: {file: key}, max_tokens: 4000}
agents:
  worker: {model: main}
compaction:
  window_tokens: 20000
  threshold_tokens: 1500
  keep_recent_tokens: 100
  summary_tokens: 400
  min_survival: 0.5
  summarizer: {module: policy.wasm}
  admission: {quota: {cooldown: 0s, timeout: 2s}}
  trial: {timeout: 3s}
limits: {timeout: 60s}
serve: {workers: 8, grace: 10s}
`

// notes is the model of policyConfig.
func notes(providertest.Query) providertest.Answer {
	return providertest.Answer{Content: []abi.ContentBlock{abi.Text("Noted.")}}
}

// facts are what the runs talk about, and what a good summary keeps.
func facts() string {
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, "services/billing/retry_%d.go ", i)
	}
	return b.String()
}

// policy is the guest of trial.wat: it fails in a way on threads that begin with a letter.
func policy(t *testing.T, letter, kind string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "summarizers", "testdata", "trial.wasm"))
	must(t, err)
	for place, text := range map[string]string{
		"................letter and kind.":         fmt.Sprintf("%-32s", letter+kind),
		strings.Repeat(".", 512-10) + "the answer": fmt.Sprintf("%-512s", fmt.Sprintf(`{"text":%q}`, facts())),
	} {
		if !bytes.Contains(b, []byte(place)) {
			t.Fatalf("%.40q is not in the module", place)
		}
		b = bytes.ReplaceAll(b, []byte(place), []byte(text))
	}
	return b
}

// policies is an operator who swaps the summarizer while clients submit runs.
type policies struct {
	*client

	t   *testing.T
	ctx context.Context
}

// say submits a run and waits for its end, which must be a success.
func (p *policies) say(thread string) {
	p.t.Helper()
	text := facts() + facts() + strings.Repeat("None of these files may be changed on a Friday. ", 120)
	status, data, err := p.call(p.ctx, false, http.MethodPost, "/v1/threads/"+thread+"/runs", map[string]any{"input": text})
	var sub struct {
		RunID string `json:"run_id"`
	}
	if err == nil && status == http.StatusAccepted {
		err = json.Unmarshal(data, &sub)
	}
	if err != nil || sub.RunID == "" {
		p.t.Errorf("submit: %d %s %v", status, data, err)
		return
	}
	_, err = p.follow(p.ctx, sub.RunID)
	var r run
	p.read(false, "/v1/runs/"+sub.RunID, &r)
	if err != nil || r.Status != "done" || r.Output != "Noted." {
		p.t.Errorf("%s: %+v, %v", thread, r, err)
	}
}

func (p *policies) read(admin bool, path string, into any) {
	p.t.Helper()
	status, data, err := p.call(p.ctx, admin, http.MethodGet, path, nil)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil || status != http.StatusOK {
		p.t.Errorf("%s: %d %s %v", path, status, data, err)
	}
}

// last is the latest change of the summarizer, and how many there were.
func (p *policies) last() (serve.Change, int) {
	p.t.Helper()
	var h struct{ Changes []serve.Change }
	p.read(true, "/v1/policies/summarizer/history", &h)
	if len(h.Changes) == 0 {
		return serve.Change{}, 0
	}
	return h.Changes[len(h.Changes)-1], len(h.Changes)
}

// until waits for another change.
func (p *policies) until(before int, meanwhile func()) serve.Change {
	p.t.Helper()
	for p.ctx.Err() == nil {
		if c, n := p.last(); n > before {
			return c
		}
		meanwhile()
	}
	p.t.Fatalf("no change came: %s", p.w.said())
	return serve.Change{}
}

// put uploads a summarizer.
func (p *policies) put(wasm []byte) (status int, body string, swapped serve.Swapped) {
	status, data, err := p.once(p.ctx, true, http.MethodPut, "/v1/policies/summarizer", wasm)
	if err == nil && status == http.StatusOK {
		err = json.Unmarshal(data, &swapped)
	}
	if err != nil {
		p.t.Error(err)
	}
	return status, string(data), swapped
}

// fails waits until the policy in use fails on threads that begin with the letter, and was rolled back before a breaker opened.
func (p *policies) fails(letter, good, says string) {
	p.t.Helper()
	_, before := p.last()
	threads := []string{letter + "1", letter + "2", letter + "3"}
	change := p.until(before, func() {
		var wg sync.WaitGroup
		for _, thread := range threads {
			wg.Go(func() { p.say(thread) })
		}
		wg.Wait()
	})
	if change.Kind != "rolled_back" || change.To != good || !strings.Contains(change.Reason, says) {
		p.t.Errorf("%s: %+v, want a roll-back to %.12s that says %q", letter, change, good, says)
	}
	for failed := 0; failed < 2 && p.ctx.Err() == nil; {
		failed = 0
		for _, thread := range threads {
			p.say(thread) // which reads how its compaction ended
			failed += p.failures(thread)
		}
	}
	var list struct{ Modules []serve.Module }
	p.read(true, "/v1/policies", &list)
	if list.Modules[0].SHA256 != good {
		p.t.Errorf("%s: %+v is in use", letter, list.Modules)
	}
}

// failures counts compactions of a thread that failed, or whose summary was refused, and expects that no breaker opened.
func (p *policies) failures(thread string) (failed int) {
	p.t.Helper()
	var c struct{ Events []compaction.Event }
	p.read(false, "/v1/threads/"+thread+"/compactions", &c)
	for _, e := range c.Events {
		switch e.Kind {
		case compaction.EventBreaker:
			p.t.Errorf("%s: the breaker opened: %s", thread, e.Reason)
		case compaction.EventFailed, compaction.EventRefused:
			failed++
		case compaction.EventSwapped:
			if strings.Contains(e.Reason, "in place of a summary that was refused") {
				failed++
			}
		default:
		}
	}
	return failed
}

// TestServe_policyTrial swaps the summarizer of a running server for binaries that panic, hang, answer nothing or lose more:
// on requests that were recorded, which refuses them, and only on live ones, which rolls them back before a breaker opens.
// By the API, by a reload and by SIGHUP. Runs continue meanwhile, and none fails.
func TestServe_policyTrial(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	w := newWorldOf(t, policyConfig, notes)
	good := policy(t, "-", "-")
	must(t, os.WriteFile(w.path("policy.wasm"), good, 0o600))
	w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	p := &policies{&client{w: w, http: &http.Client{Transport: &http.Transport{}}}, t, ctx}
	defer p.http.CloseIdleConnections()
	digest := p.recorded("r1", "r2")

	p.byFile(digest)
	p.recorded("r3", "r4") // the trial takes the newest requests, which may all be of other threads now
	for kind, says := range map[string]string{
		"p": "trial: it fails on recorded request ", "h": "out of time", "n": "it answered nothing", "l": "it loses more: of the facts in the recorded requests",
	} {
		stop, over := make(chan struct{}), make(chan int, 1)
		go func() { over <- p.busy("x"+kind, stop) }()
		status, body, _ := p.put(policy(t, "r", kind))
		close(stop)
		if runs := <-over; kind == "h" && runs == 0 {
			t.Errorf("no run ended while a policy hung in its trial")
		}
		if status != http.StatusUnprocessableEntity || !strings.Contains(body, "trial: ") || !strings.Contains(body, says) {
			t.Errorf("%s: %d %s", kind, status, body)
		}
		if c, _ := p.last(); c.Kind != "refused" || c.From != digest || c.To == digest || !strings.Contains(c.Reason, says) {
			t.Errorf("%s: %+v", kind, c)
		}
	}
	for _, tc := range []struct{ letter, kind, says string }{
		{"a", "p", "unreachable"}, {"b", "h", "deadline"}, {"c", "n", "it answered nothing"}, {"d", "l", "the quality gate refused its summary: it keeps"},
	} {
		status, body, swapped := p.put(policy(t, tc.letter, tc.kind))
		if status != http.StatusOK || !tried(swapped.Trial) {
			t.Fatalf("%s: %d %s", tc.kind, status, body)
		}
		p.fails(tc.letter, digest, tc.says)
	}
	w.stop(t)
}

// recorded has the threads compacted, so that requests are recorded, and returns the checksum of the policy in use.
func (p *policies) recorded(threads ...string) string {
	p.t.Helper()
	for _, thread := range threads {
		for swapped := 0; swapped == 0 && p.ctx.Err() == nil; {
			p.say(thread)
			var c struct{ Total int }
			p.read(false, "/v1/threads/"+thread+"/compactions", &c)
			swapped = c.Total
		}
	}
	var list struct{ Modules []serve.Module }
	p.read(true, "/v1/policies", &list)
	return list.Modules[0].SHA256
}

// busy has runs executed until stop is closed, and returns how many ended before.
func (p *policies) busy(threads string, stop <-chan struct{}) (ended int) {
	for i := 0; ; i++ {
		p.say(fmt.Sprintf("%s%d", threads, i)) // too short to be compacted
		select {
		case <-stop:
			return ended
		default:
			ended++
		}
	}
}

// tried reports whether a trial compared both sides on recorded requests.
func tried(r *trial.Report) bool {
	if r == nil || r.Sample || len(r.Requests) == 0 || r.NewSurvival < r.OldSurvival-r.MaxLoss {
		return false
	}
	row := r.Requests[len(r.Requests)-1]
	return row.SourceTokens > 0 && row.New.SummaryTokens > 0 && row.New.Survival > 0.9 && row.New.Duration > 0
}

// byFile has the file of the policy replaced: POST /v1/reload, and then SIGHUP.
func (p *policies) byFile(digest string) {
	t := p.t
	t.Helper()
	replace := func(wasm []byte) {
		must(t, os.WriteFile(p.w.path("policy.new"), wasm, 0o600))
		must(t, os.Rename(p.w.path("policy.new"), p.w.path("policy.wasm")))
	}
	hangup := func() {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		must(t, p.w.procs[0].cmd.Process.Signal(syscall.SIGHUP))
	}
	replace(policy(t, "r", "p"))
	status, data, err := p.once(p.ctx, true, http.MethodPost, "/v1/reload", nil)
	if err != nil || status != http.StatusUnprocessableEntity || !strings.Contains(string(data), "trial: it fails on recorded request") {
		t.Errorf("reload: %d %s %v", status, data, err)
	}
	pause50 := func() { pause(p.ctx, retry) }
	replace(policy(t, "r", "l"))
	_, n := p.last()
	hangup()
	if c := p.until(n, pause50); c.Kind != "refused" || !strings.Contains(c.Reason, "it loses more") {
		t.Errorf("SIGHUP: %+v", c)
	}
	replace(policy(t, "e", "p"))
	_, n = p.last()
	hangup()
	if c := p.until(n, pause50); c.Kind != "swapped" || c.From != digest {
		t.Errorf("SIGHUP: %+v", c)
	}
	p.fails("e", digest, "unreachable")
}

package mortise_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// worker is a model: it starts a build when asked to, and answers ok to all else. It keeps the
// text of each request.
type worker struct {
	mu   sync.Mutex
	seen []string
}

func (w *worker) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for i := range r.Messages {
		all = append(all, r.Messages[i].Text())
	}
	w.seen = append(w.seen, strings.Join(all, "\n"))
	m := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("ok")}}
	if all[len(all)-1] == "build" {
		m = abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "build"}}}
	}
	return &abi.Response{Message: m}, nil
}

// builds is a tool that takes a minute.
type builds struct{}

func (builds) Tools() []abi.Tool { return []abi.Tool{{Name: "build"}} }

func (builds) CallTool(context.Context, abi.ToolCall) (abi.ToolResult, error) {
	time.Sleep(time.Minute)
	return abi.ToolResult{Message: "42 pages"}, nil
}

// late is a summarizer that takes a second.
type late struct{}

func (late) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	time.Sleep(time.Second)
	return &abi.Summary{Text: "SUMMARY"}, nil
}

// pins is a native plugin.
type pins struct{}

func (pins) Describe() abi.Description {
	return abi.Description{
		Name: "pins", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform}},
	}
}

func (pins) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Effects: []abi.Effect{{
		Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "style", Content: []abi.ContentBlock{abi.Text("Answer briefly.")}},
	}}}, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ask submits a text and waits for its run.
func ask(t *testing.T, r *mortise.Runtime, text string) mailbox.Dispatch {
	t.Helper()
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}})
	must(t, err)
	sub, err := r.Mailbox().SubmitBackground(t.Context(), mailbox.Request{Thread: "t", Messages: input})
	must(t, err)
	d, err := r.Mailbox().Await(t.Context(), sub.Dispatch)
	must(t, err)
	return d
}

// TestRuntime_meets: a task that ends after the run that started it, a compaction that ends between
// two runs, and a plugin's decision all reach the thread, the stream and the record.
func TestRuntime_meets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := memstore.New()
		records, err := thread.NewRecorder(t.Context(), kept, thread.RecordConfig{})
		must(t, err)
		model := &worker{}
		r, err := mortise.New(t.Context(), mortise.Config{
			Agents:  map[string]mortise.Agent{"a": {Model: model, Tools: builds{}, Background: []string{"build"}}},
			Plugins: []phases.Plugin{pins{}}, Records: records,
			Words: func(list []abi.Notice) (string, int) { return inbox.FollowUp(list, 4096) },
			Compaction: &compaction.Config{
				Policy: compaction.Policy{
					WindowTokens: 100_000, ThresholdTokens: 1_000, KeepRecentTokens: 1, KeepRecentMessages: 1,
					MinRangeTokens: 1_024, SummaryTokens: 500, BreakerFailures: -1, MinSurvival: -1,
				},
				Summarizer: late{},
			},
		})
		must(t, err)
		must(t, r.Start(t.Context()))
		defer r.Close(context.Background())

		if d := ask(t, r, "build"); d.RunStatus != mailbox.RunWaiting {
			t.Fatalf("a run with a task is %s: %s", d.RunStatus, d.RunError)
		}
		time.Sleep(2 * time.Minute) // the task ends, and wakes the thread
		synctest.Wait()
		if last := model.seen[len(model.seen)-1]; len(model.seen) != 3 || !strings.Contains(last, "42 pages") || !strings.Contains(last, "Started as background task") {
			t.Errorf("after the task the model was sent %q", model.seen)
		}
		for i := range 3 {
			ask(t, r, fmt.Sprintf("%d ", i)+strings.Repeat("filler ", 800))
			time.Sleep(time.Minute) // the compaction ends
		}
		last := ask(t, r, "and now?")
		if text := model.seen[len(model.seen)-1]; !strings.Contains(text, "SUMMARY") || !strings.Contains(text, "Answer briefly.") {
			t.Errorf("the last request is\n%.2000s", text)
		}
		kinds := streamed(t, r, last.ID)
		if !slices.Contains(kinds, mortise.EventPlugin) || kinds[len(kinds)-1] != mailbox.EventSettled {
			t.Errorf("the stream is %q", kinds)
		}
		must(t, r.Close(t.Context()))
		must(t, records.Close(t.Context()))
		run, err := thread.RecordsOf(kept).In(t.Context(), "t", last.RunID)
		must(t, err)
		if !slices.ContainsFunc(run.Entries, func(e thread.Decision) bool { return e.Plugin == "pins" }) {
			t.Errorf("the record has %+v", run.Entries)
		}
	})
}

// streamed returns the types of a dispatch's events. Each has JSON for data.
func streamed(t *testing.T, r *mortise.Runtime, dispatch string) []string {
	t.Helper()
	feed, err := r.Mailbox().Attach(t.Context(), dispatch)
	must(t, err)
	var out []string
	for seq := uint64(0); ; {
		e, err := feed.Next(t.Context(), seq)
		if errors.Is(err, mailbox.ErrEnd) {
			return out
		}
		must(t, err)
		if e.Type == mortise.EventPlugin && !json.Valid(e.Data) {
			t.Errorf("%s has %q", e.Type, e.Data)
		}
		out, seq = append(out, e.Type), e.Seq
	}
}

// TestNew_refuses: what cannot run is refused with the name of the agent.
func TestNew_refuses(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]mortise.Config{
		"Config.Agents is empty":  {},
		`agent "a": Model is nil`: {Agents: map[string]mortise.Agent{"a": {}}},
		`there is no agent "b"`:   {Agents: map[string]mortise.Agent{"a": {Model: &worker{}}}, Default: "b"},
		`agent "a": phases:`:      {Agents: map[string]mortise.Agent{"a": {Model: &worker{}, Plugins: []string{"guard"}}}},
	} {
		if _, err := mortise.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestRuntime_unknownAgent: a request for an agent that is not there ends at once, as failed.
func TestRuntime_unknownAgent(t *testing.T) {
	t.Parallel()
	r, err := mortise.New(t.Context(), mortise.Config{Agents: map[string]mortise.Agent{"a": {Model: &worker{}}}})
	must(t, err)
	must(t, r.Start(t.Context()))
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("hello")}})
	must(t, err)
	sub, err := r.Mailbox().SubmitBackground(t.Context(), mailbox.Request{Agent: "b", Messages: input})
	must(t, err)
	d, err := r.Mailbox().Await(t.Context(), sub.Dispatch)
	must(t, err)
	if !strings.Contains(d.LastError+d.RunError, agent.ErrNoAgent.Error()) {
		t.Errorf("the dispatch is %+v", d)
	}
	must(t, r.Close(t.Context()))
}

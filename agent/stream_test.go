package agent_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
)

// streamer streams from a list: one list of deltas, and one error, for each request.
type streamer struct {
	script

	streams  [][]llm.Delta
	errs     []error
	requests []llm.Request
}

func (s *streamer) Stream(ctx context.Context, r llm.Request, emit func(llm.Delta) bool) error {
	n := len(s.requests)
	s.requests = append(s.requests, r)
	if n >= len(s.streams) {
		return &llm.Error{Kind: llm.KindInvalidRequest, Message: "the script is over"}
	}
	for _, d := range s.streams[n] {
		if d.Type == "hang" {
			<-ctx.Done()
			return ctx.Err()
		}
		if !emit(d) {
			return ctx.Err()
		}
	}
	if n < len(s.errs) {
		return s.errs[n]
	}
	return nil
}

func text(s string) llm.Delta { return llm.Delta{Type: llm.DeltaText, Text: s} }

func streamed(id, name, arguments string) []llm.Delta {
	return []llm.Delta{
		{Type: llm.DeltaCallStart, CallID: id, Name: name}, {Type: llm.DeltaCallArguments, Text: arguments}, {Type: llm.DeltaBlockStop},
	}
}

func (b *bench) types() []agent.EventType {
	var out []agent.EventType
	for _, e := range b.events {
		if e.Type != agent.EventPhase {
			out = append(out, e.Type)
		}
	}
	return out
}

func TestStreamedRun(t *testing.T) {
	t.Parallel()
	m := &streamer{streams: [][]llm.Delta{
		slices.Concat([]llm.Delta{{Type: llm.DeltaReasoning, Text: "hm"}, {Type: llm.DeltaSignature, Text: "sig"}, text("I look.")}, streamed("c1", "echo", `"a"`)),
		{text("done")},
	}}
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: m}})
	r := mustRun(t, b, request(user("go")))
	want := []agent.EventType{
		agent.EventRunStart, agent.EventStepStart, agent.EventReasoningDelta, agent.EventTextDelta, agent.EventToolCallStart, agent.EventToolCallDelta,
		agent.EventToolCallReady, agent.EventInferenceComplete, agent.EventReasoningEncrypted, agent.EventToolCallDone, agent.EventStepEnd,
		agent.EventStepStart, agent.EventTextDelta, agent.EventInferenceComplete, agent.EventStepEnd, agent.EventRunFinish,
	}
	if got := b.types(); !slices.Equal(got, want) {
		t.Errorf("events\n%v\nwant\n%v", got, want)
	}
	log := b.agent.Thread("t").Messages()
	if block := log[1].Content[0]; block.Type != abi.BlockThinking || block.Signature != "sig" || r.Response != "done" {
		t.Errorf("thinking is not kept: %+v", log[1])
	}
	if sent := m.requests[1].Messages[1].Content[0]; sent.Type != abi.BlockThinking {
		t.Errorf("thinking is not sent back: %+v", sent)
	}
}

func TestCancelledStreamIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &streamer{streams: [][]llm.Delta{{text("half an "), text("answer"), {Type: "hang"}}}}
		b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: m}})
		out := start(t, b, request(user("go")))
		synctest.Wait()
		control(t, b, "t").Cancel()
		end := <-out
		log := b.agent.Thread("t").Messages()
		if end.result.Termination.Type != agent.Cancelled || end.result.Response != "half an answer" || log[len(log)-1].Text() != "half an answer" {
			t.Errorf("result %+v, log %q", end.result, texts(log))
		}
		checkEvents(t, b.events)
		checkLog(t, b)
	})
}

func TestBrokenStreamIsWhole(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := &llm.Error{Kind: llm.KindStreamInterrupted}
		m := &streamer{
			streams: [][]llm.Delta{
				{text("the beginning ")},
				append([]llm.Delta{text("and the end")}, append(streamed("c1", "echo", `"a"`), llm.Delta{Type: llm.DeltaCallStart, CallID: "c2", Name: "shell"})...),
				streamed("c3", "echo", "{oops"),
				{text("done")},
			},
			errs: []error{lost, lost, nil, nil},
		}
		b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: m}})
		r := mustRun(t, b, request(user("go")))
		log := b.agent.Thread("t").Messages()
		want := []string{
			"user: go", "assistant: the beginning and the end", "tool: a",
			"user: The connection broke while you wrote further calls, and they were not executed: \"shell\". Make them again if you still need them.",
			"user: These calls had arguments that are not valid JSON, and were not executed: \"echo\". Make them again with valid JSON.",
			"assistant: done",
		}
		if got := texts(log); !slices.Equal(got, want) || r.Steps != 3 || log[3].Visibility != abi.VisibilityInternal {
			t.Errorf("log %q", got)
		}
		if b.count(agent.EventToolCallCancel) != 2 || b.count(agent.EventToolCallDone) != 1 {
			t.Errorf("%d cancelled", b.count(agent.EventToolCallCancel))
		}
	})
}

func TestFailedStreamIsKeptAndPaid(t *testing.T) {
	t.Parallel()
	bill := llm.Delta{Type: llm.DeltaUsage, Usage: &abi.Usage{PromptTokens: 7}}
	m := &streamer{streams: [][]llm.Delta{{text("so far"), bill}}, errs: []error{&llm.Error{Kind: llm.KindContentFiltered}}}
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: m}})
	r, err := b.agent.Run(t.Context(), request(user("go")))
	if err == nil || r.Response != "so far" || r.Usage.PromptTokens != 7 {
		t.Errorf("result %+v, error %v", r, err)
	}
	checkLog(t, b)
}

// TestHangingConnectIsCancelled: nothing that the model does, or does not do, keeps a
// run from ending.
func TestHangingConnectIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		b := newBench(t, &script{during: func() { <-hold }}, agent.Config{Limits: agent.Limits{Grace: 2 * time.Second}})
		out := start(t, b, request(user("go")))
		synctest.Wait()
		begin := time.Now()
		control(t, b, "t").Cancel()
		if end := <-out; !errors.Is(end.err, context.Canceled) || time.Since(begin) != 2*time.Second {
			t.Errorf("ended after %v: %v", time.Since(begin), end.err)
		}
		close(hold)
		synctest.Wait()
	})
}

func TestToolDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a"), calls("c2", "echo", "b")), says("done")}},
			agent.Config{Execution: agent.Execution{ToolTimeout: time.Minute}, Limits: agent.Limits{Grace: time.Second}})
		hold := make(chan struct{})
		b.tools.do = func(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
			if call.ID == "c1" {
				<-hold // deaf
				return abi.ToolResult{}, nil
			}
			<-ctx.Done()
			return abi.ToolResult{}, context.Cause(ctx)
		}
		r := mustRun(t, b, request(user("go")))
		got := toolTexts(b)
		if r.Termination.Type != agent.NaturalEnd || !strings.Contains(got[0], "did not come back within 1m0s") || !strings.Contains(got[1], "the tool took too long") {
			t.Errorf("result %+v, tools %q", r, got)
		}
		close(hold)
		synctest.Wait()
	})
}

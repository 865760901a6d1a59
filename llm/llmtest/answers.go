package llmtest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/providertest"
)

func answerCases() []testCase {
	return []testCase{
		{name: "text", run: plainText},
		{name: "stream", run: streamed},
		{name: "stream_of_calls", run: streamedCalls},
		{name: "parallel_calls", run: parallelCalls},
		{name: "malformed_arguments", run: malformed},
		{name: "thinking", run: thinking},
		{name: "thinking_over_tool_use", run: thinkingOverToolUse, needs: Signatures},
		{name: "redacted_thinking", run: redacted, needs: Signatures},
		{name: "cut_at_the_limit", run: cutAtLimit},
		{name: "concurrent", run: concurrent},
	}
}

func plainText(w *world) {
	w.both(func(name string, ask func(llm.Request) *abi.Response) {
		got := ask(w.request(user("Hi")))
		if got.Message.Role != abi.RoleAssistant || got.Message.Text() != "Hello." || got.StopReason != abi.StopEndTurn || got.Model == "" || got.Error != "" {
			w.t.Errorf("%s: the response is %+v", name, got)
		}
		w.billed(got.Usage)
	})
}

func streamed(w *world) {
	const long = "This is an answer of several chunks, with ümläuts and 世界."
	w.answers(text(long))
	o, err := w.stream(w.request(user("Hi")))
	if err != nil || o.text != long {
		w.t.Fatalf("the text is %q: %v", o.text, err)
	}
	if n := len(o.all); n < 4 || o.all[n-1].Stop != abi.StopEndTurn {
		w.t.Errorf("the deltas are %+v", o.all)
	}
	w.billed(&o.usage)
}

func streamedCalls(w *world) {
	w.answers(providertest.Answer{Content: []abi.ContentBlock{abi.Text("I add.")}, Calls: calls()})
	r := w.request(user("Add"))
	r.Tools = tools()
	o, err := w.stream(r)
	if err != nil {
		w.t.Fatal(err)
	}
	begun := slices.DeleteFunc(slices.Clone(o.all), func(d llm.Delta) bool { return d.Type != llm.DeltaCallStart })
	if len(begun) != 3 || begun[0].CallID != "call_1" || begun[2].Name != "add" || o.all[len(o.all)-1].Stop != abi.StopToolUse {
		w.t.Errorf("the deltas are %+v", o.all)
	}
	w.billed(&o.usage)
}

func parallelCalls(w *world) {
	w.answers(providertest.Answer{Content: []abi.ContentBlock{abi.Text("I add.")}, Calls: calls()})
	r := w.request(user("Add"))
	r.Tools = tools()
	w.both(func(name string, ask func(llm.Request) *abi.Response) {
		got := ask(r)
		if got.Message.Text() != "I add." || got.StopReason != abi.StopToolUse || len(got.Message.ToolCalls) != 3 {
			w.t.Fatalf("%s: the response is %+v", name, got)
		}
		for i, want := range calls() {
			if got := got.Message.ToolCalls[i]; !sameCall(got, want) {
				w.t.Errorf("%s: call %d is %#v, want %#v", name, i, got, want)
			}
		}
		w.billed(got.Usage)
	})
}

// sameCall compares calls; no arguments at all and an empty object are the same.
func sameCall(got, want abi.ToolCall) bool {
	if m, ok := got.Arguments.(map[string]any); ok && len(m) == 0 {
		got.Arguments = nil
	}
	return reflect.DeepEqual(got, want)
}

// malformed holds that arguments which are not JSON arrive as text, and go back to the provider.
func malformed(w *world) {
	const raw = `{"a": 1, "b": [`
	answer := providertest.Answer{
		Calls: []abi.ToolCall{{ID: "call_1", Name: "add"}}, RawArguments: map[string]string{"call_1": raw},
	}
	r := w.request(user("Add"))
	r.Tools, r.KeepMalformed = tools(), true
	w.both(func(name string, ask func(llm.Request) *abi.Response) {
		w.answers(answer)
		got := ask(r)
		if len(got.Message.ToolCalls) != 1 || got.Message.ToolCalls[0].Arguments != raw {
			w.t.Fatalf("%s: the calls are %+v", name, got.Message.ToolCalls)
		}
		w.answers(text("Sorry."))
		next := r
		next.Messages = []abi.Message{user("Add"), got.Message, result("call_1", "The arguments are not JSON.")}
		if got := ask(next); got.Message.Text() != "Sorry." {
			w.t.Errorf("%s: the next response is %+v", name, got)
		}
	})
}

func effort(s string) *abi.InferenceOverride { return &abi.InferenceOverride{ReasoningEffort: &s} }

// thinks makes a request one with thinking.
func (w *world) thinks(r llm.Request) llm.Request {
	r.Model, r.Override = w.o.Thinker, effort("low")
	return r
}

func thinking(w *world) {
	const idea = "The sum of two and three is to be found."
	w.answers(providertest.Answer{Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: idea}, abi.Text("Five.")}})
	w.both(func(name string, ask func(llm.Request) *abi.Response) {
		got := ask(w.thinks(w.request(user("2+3?"))))
		c := got.Message.Content
		if len(c) != 2 || c[0].Type != abi.BlockThinking || c[0].Text != idea || c[1].Text != "Five." {
			w.t.Errorf("%s: the content is %+v", name, c)
		}
		w.billed(got.Usage)
		if got.Usage.ThinkingTokens == 0 {
			w.t.Errorf("%s: no thinking tokens in %+v", name, got.Usage)
		}
	})
}

func thinkingOverToolUse(w *world) {
	first := providertest.Answer{
		Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: "I should add these."}, abi.Text("I add.")}, Calls: calls()[:2],
	}
	r := w.thinks(w.request(user("Add")))
	r.Tools = tools()
	w.both(func(name string, ask func(llm.Request) *abi.Response) {
		w.answers(first)
		got := ask(r)
		if c := got.Message.Content; len(c) != 2 || c[0].Type != abi.BlockThinking || c[0].Signature == "" {
			w.t.Fatalf("%s: the content is %+v", name, c)
		}
		w.answers(text("Done."))
		next := r
		next.Messages = []abi.Message{user("Hi"), user("Add"), got.Message, result("call_1", "5"), result("call_2", "noon")}
		if got := ask(next); got.Message.Text() != "Done." {
			w.t.Errorf("%s: the next response is %+v", name, got)
		}
		last := w.lastQuery()
		if !slices.ContainsFunc(last.Messages, func(m abi.Message) bool {
			return slices.ContainsFunc(m.Content, func(b abi.ContentBlock) bool { return b.Type == abi.BlockThinking && b.Signature != "" })
		}) {
			w.t.Errorf("%s: no thinking went back: %+v", name, last.Messages)
		}
	})
}

func (w *world) lastQuery() providertest.Query {
	w.mu.Lock()
	n := len(w.queries)
	w.mu.Unlock()
	return w.query(n - 1)
}

// redacted holds that thinking which shows no text goes back all the same.
func redacted(w *world) {
	first := providertest.Answer{Content: []abi.ContentBlock{{Type: abi.BlockThinking}}, Calls: calls()[:1]}
	r := w.thinks(w.request(user("Add")))
	r.Tools = tools()
	w.both(func(name string, ask func(llm.Request) *abi.Response) {
		w.answers(first)
		got := ask(r)
		if c := got.Message.Content; len(c) != 1 || c[0].Type != abi.BlockThinking || c[0].Signature == "" || c[0].Text != "" {
			w.t.Fatalf("%s: the content is %+v", name, c)
		}
		w.answers(text("Done."))
		next := r
		next.Messages = append(slices.Clone(r.Messages), got.Message, result("call_1", "5"))
		if got := ask(next); got.Message.Text() != "Done." {
			w.t.Errorf("%s: the next response is %+v", name, got)
		}
	})
}

func cutAtLimit(w *world) {
	w.answers(text(strings.Repeat("word ", 100)))
	limit := int64(16)
	r := w.request(user("Hi"))
	r.Override = &abi.InferenceOverride{MaxTokens: &limit}
	got := w.infer(r)
	if got.StopReason != abi.StopMaxTokens || got.Usage == nil || got.Usage.CompletionTokens != limit {
		w.t.Errorf("the response is %+v, usage %+v", got, got.Usage)
	}
	o, err := w.stream(r)
	if err != nil || o.all[len(o.all)-1].Stop != abi.StopMaxTokens {
		w.t.Errorf("the deltas are %+v: %v", o.all, err)
	}
}

func concurrent(w *world) {
	w.mu.Lock()
	w.reply = func(q providertest.Query) providertest.Answer { return text("re " + q.Messages[0].Text()) }
	w.mu.Unlock()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			o := &order{t: w.t}
			err := w.m.(llm.Streamer).Stream(w.ctx(), w.request(user(fmt.Sprint("n", i))), o.emit) //nolint:errcheck,forcetypeassert // a case of its own
			if err != nil || o.text != fmt.Sprint("re n", i) {
				w.t.Errorf("request %d: %q, %v", i, o.text, err)
			}
		})
	}
	wg.Wait()
}

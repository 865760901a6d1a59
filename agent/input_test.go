package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
)

func unfit() map[string][]abi.Message {
	named := func(id string, m abi.Message) abi.Message { m.ID = id; return m }
	return map[string][]abi.Message{
		"result of no call":     {{Role: abi.RoleTool, ToolCallID: "c9", Content: []abi.ContentBlock{abi.Text("forged")}}},
		"open call":             {says("", calls("c1", "echo", "a")), user("and now")},
		"unknown role":          {{Role: "operator", Content: []abi.ContentBlock{abi.Text("obey")}}},
		"two of one id":         {named("x", user("a")), named("x", user("b"))},
		"id of another message": {named("first", user("again"))},
	}
}

func TestUnfitMessagesAreRefused(t *testing.T) {
	t.Parallel()
	for name, messages := range unfit() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("ok")}}, agent.Config{})
			first := user("go")
			first.ID = "first"
			if err := b.agent.Append(t.Context(), "t", first); err != nil {
				t.Fatal(err)
			}
			if _, err := b.agent.Run(t.Context(), request(messages...)); !errors.Is(err, agent.ErrMessages) {
				t.Errorf("run: %v, want ErrMessages", err)
			}
			if err := b.agent.Append(t.Context(), "t", messages...); !errors.Is(err, agent.ErrMessages) {
				t.Errorf("append: %v, want ErrMessages", err)
			}
			if log := b.agent.Thread("t").Messages(); len(log) != 1 || len(b.events) != 0 {
				t.Errorf("a refused run left %q and %d events", texts(log), len(b.events))
			}
			if _, err := b.agent.Run(t.Context(), request()); err != nil {
				t.Errorf("the thread is not usable after it: %v", err)
			}
		})
	}
}

func TestUnfitNoticesAreKeptAsText(t *testing.T) {
	t.Parallel()
	for name, messages := range unfit() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("ok")}}, agent.Config{})
			first := user("go")
			first.ID = "first"
			if err := b.agent.Append(t.Context(), "t", first); err != nil {
				t.Fatal(err)
			}
			if err := b.agent.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeMessages, Messages: messages}); err != nil {
				t.Fatal(err)
			}
			if _, err := b.agent.Run(t.Context(), request()); err != nil {
				t.Fatal(err)
			}
			checkLog(t, b)
			all := strings.Join(texts(b.agent.Thread("t").Messages()), "\n")
			for i := range messages {
				if !strings.Contains(all, messages[i].Text()) {
					t.Errorf("%q was lost:\n%s", messages[i].Text(), all)
				}
			}
		})
	}
}

// TestAppendRunDeliverTogether runs all three at once: what was accepted is in
// the log once, what was refused is not, and calls and results stay together.
func TestAppendRunDeliverTogether(t *testing.T) {
	t.Parallel()
	model := &script{}
	for i := range 400 {
		model.answers = append(model.answers, says("", calls(fmt.Sprint("c", i), "echo", "x"), calls("d", "echo", "y")), says("ok"))
	}
	b := newBench(t, model, agent.Config{Notifications: agent.Notifications{InboxDepth: 2}})
	var mu sync.Mutex
	accepted := map[string]bool{}
	try := func(text string, do func(abi.Message) error) {
		err := do(user(text))
		mu.Lock()
		defer mu.Unlock()
		if accepted[text] = err == nil; err != nil && !errors.Is(err, agent.ErrThreadBusy) && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var senders, others sync.WaitGroup
	senders.Go(func() {
		for i := range 200 {
			try(fmt.Sprintf("<delivered %d>", i), func(m abi.Message) error {
				return b.agent.Deliver(ctx, "t", abi.Notice{Kind: abi.NoticeMessages, Messages: []abi.Message{m}})
			})
		}
	})
	for g := range 3 {
		others.Go(func() {
			for i := range 60 {
				try(fmt.Sprintf("<appended %d %d>", g, i), func(m abi.Message) error { return b.agent.Append(t.Context(), "t", m) })
				try(fmt.Sprintf("<run %d %d>", g, i), func(m abi.Message) error {
					_, err := b.agent.Run(t.Context(), request(m))
					return err
				})
			}
		})
	}
	others.Wait()
	cancel() // a sender that still waits for room is refused
	senders.Wait()
	if _, err := b.agent.Run(t.Context(), request()); err != nil {
		t.Fatal(err)
	}
	log := b.agent.Thread("t").Messages()
	if err := phases.CheckStructure(log); err != nil {
		t.Error(err)
	}
	all := strings.Join(texts(log), "\n")
	for text, ok := range accepted {
		if got := strings.Count(all, text); (got == 1) != ok || got > 1 {
			t.Errorf("%s: accepted %v, stands %d times", text, ok, got)
		}
	}
}

func TestNoMessageIDCollidesWithTheSystemPrompt(t *testing.T) {
	t.Parallel()
	adds := &hook{name: "adds", phase: abi.BeforeInference, mode: abi.ModeTransform, do: func(context.Context, *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectAddContext, Context: &abi.ContextMessage{
			Key: "k", Content: []abi.ContentBlock{abi.Text("mind the gap")},
		}}}}, nil
	}}
	for _, id := range []string{"system", "context/adds/k"} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("ok")}}, agent.Config{Profile: agent.Profile{SystemPrompt: "be good"}}, adds)
			ask := user("go")
			ask.ID = id
			if _, err := b.agent.Run(t.Context(), request(ask)); err != nil {
				t.Fatal(err)
			}
			checkLog(t, b)
		})
	}
}

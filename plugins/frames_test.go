package plugins_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

// watched is a context that keeps the longest way from Agent.Run into the engine on which one of its methods was called.
type watched struct {
	context.Context

	mu  sync.Mutex
	way []string
}

func (w *watched) Deadline() (time.Time, bool) { w.look(); return w.Context.Deadline() }
func (w *watched) Done() <-chan struct{}       { w.look(); return w.Context.Done() }
func (w *watched) Err() error                  { w.look(); return w.Context.Err() }
func (w *watched) Value(key any) any           { w.look(); return w.Context.Value(key) }

func (w *watched) look() {
	pcs := make([]uintptr, 256)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var names []string
	for {
		f, more := frames.Next()
		names = append(names, f.Function)
		if !more {
			break
		}
	}
	slices.Reverse(names)
	from := slices.Index(names, "github.com/mortise-dev/mortise/agent.(*Agent).Run")
	to := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, "github.com/tetratelabs/wazero") })
	w.mu.Lock()
	defer w.mu.Unlock()
	if from >= 0 && to-from > len(w.way) {
		w.way = names[from:to]
	}
}

// TestFrames: from Agent.Run to the call of the engine a phase takes at most 20 frames, at after_tool_execute, which is the
// furthest.
func TestFrames(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Module: module("redact")})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := phases.New(phases.Config{Plugins: set.Plugins()})
	if err != nil {
		t.Fatal(err)
	}
	if len(rt.Order(abi.AfterToolExecute)) == 0 {
		t.Fatal("the guest has no hook at after_tool_execute")
	}
	a, err := agent.New(agent.Config{Profile: agent.Profile{Model: &asks{commands: []string{"cat content.env"}}, Tools: answers{}, Phases: rt}})
	if err != nil {
		t.Fatal(err)
	}
	w := &watched{Context: t.Context()}
	user := abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("go")}}
	if _, err := a.Run(w, agent.Request{ThreadID: "t", Messages: []abi.Message{user}}); err != nil {
		t.Fatal(err)
	}
	if n := len(w.way); n == 0 || n > 20 {
		t.Errorf("%d frames:\n%s", n, strings.Join(w.way, "\n"))
	}
}

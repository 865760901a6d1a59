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

// watched is a context that keeps the longest way from one function to another on which one of its methods was called.
type watched struct {
	context.Context

	from, to string

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
	from := slices.Index(names, w.from)
	to := slices.IndexFunc(names, func(n string) bool { return strings.HasPrefix(n, w.to) })
	w.mu.Lock()
	defer w.mu.Unlock()
	if from >= 0 && to-from > len(w.way) {
		w.way = names[from:to]
	}
}

// inner is a plugin whose calls get a watched context, and keep the longest way from Agent.Run to the calls of hooks.
type inner struct {
	phases.Plugin

	watch *watched
	outer *[]string
}

func (p inner) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	p.watch.Context = ctx
	if way := waiting("agent.(*Agent).Run", "phases.(*pass).invoke"); len(way) > len(*p.outer) {
		*p.outer = way
	}
	return p.Plugin.OnPhase(p.watch, e) //nolint:contextcheck // it is made of ctx
}

// waiting returns the frames of the goroutine that has been called from one function and waits in another, both included.
func waiting(from, to string) []string {
	all := make([]byte, 4<<20)
	for stack := range strings.SplitSeq(string(all[:runtime.Stack(all, true)]), "\n\n") {
		var names []string
		for line := range strings.Lines(stack) {
			if name, ok := strings.CutPrefix(line, "github.com/mortise-dev/mortise/"); ok {
				names = append(names, name[:strings.LastIndexByte(name, '(')])
			}
		}
		slices.Reverse(names)
		if first, last := slices.Index(names, from), slices.Index(names, to); first >= 0 && last > first {
			return names[first : last+1]
		}
	}
	return nil
}

// TestFrames: from Agent.Run to the call of the engine a phase takes at most 20 frames, at after_tool_execute, which is the
// furthest: from there to the calls of the hooks, and from a call, which has a goroutine of its own, to the engine.
func TestFrames(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Module: module("redact")})
	if err != nil {
		t.Fatal(err)
	}
	const phasesPackage = "github.com/mortise-dev/mortise/phases."
	var outer []string
	hook := &watched{from: phasesPackage + "(*Runtime).answer", to: "github.com/tetratelabs/wazero"}
	rt, err := phases.New(phases.Config{Plugins: []phases.Plugin{inner{set.Plugins()[0], hook, &outer}}})
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
	user := abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("go")}}
	if _, err := a.Run(t.Context(), agent.Request{ThreadID: "t", Messages: []abi.Message{user}}); err != nil {
		t.Fatal(err)
	}
	way := slices.Concat(outer, []string{phasesPackage + "(*Runtime).call"}, slices.DeleteFunc(hook.way, func(n string) bool {
		return strings.HasSuffix(n, "plugins_test.inner.OnPhase")
	}))
	if len(outer) == 0 || len(hook.way) == 0 || len(way) > 20 {
		t.Errorf("%d frames:\n%s", len(way), strings.Join(way, "\n"))
	}
}

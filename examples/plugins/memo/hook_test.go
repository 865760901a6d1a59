package main

import (
	"fmt"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// desk is a conversation: it keeps the state between events, as a host does.
type desk struct {
	t      *testing.T
	state  map[string]any
	config any
	now    int64
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	return &desk{t: t, state: map[string]any{}, now: 1_000_000}
}

func (d *desk) apply(updates []mortise.Update) {
	for _, u := range updates {
		switch u.Op {
		case mortise.OpSet:
			d.state[u.Key] = u.Value
		case mortise.OpAdd:
			n, _ := d.state[u.Key].(int64)
			d.state[u.Key] = n + u.Value.(int64) //nolint:forcetypeassert // of this plugin
		default:
			d.t.Errorf("operation %s", u.Op)
		}
	}
}

func (d *desk) event(e *mortise.Event) *mortise.Reply {
	d.t.Helper()
	e.State, e.Config, e.NowMS = d.state, d.config, d.now
	r, err := onPhase(e)
	if err != nil {
		d.t.Fatal(err)
	}
	if r == nil {
		return &mortise.Reply{}
	}
	d.apply(r.Updates)
	return r
}

// call takes a call through the gate, and runs the tool if it was not answered there. It
// reports whether it was, and the text.
func (d *desk) call(kind mortise.ToolKind, name, path, answer string) (cached bool, text string) {
	d.t.Helper()
	c := &mortise.ToolCall{ID: "c", Name: name, Kind: kind, Arguments: map[string]any{"path": path}}
	result := &mortise.ToolResult{Status: mortise.ToolSuccess, Content: []mortise.ContentBlock{mortise.Text(answer)}}
	if r := d.event(&mortise.Event{Phase: mortise.ToolGate, Call: c}); r.Gate != nil {
		cached, result = true, r.Gate.Result
	}
	d.event(&mortise.Event{Phase: mortise.AfterToolExecute, Call: c, Result: result})
	return cached, result.Content[0].Text
}

func (d *desk) tool(arguments map[string]any) string {
	d.t.Helper()
	r, err := callTool(&mortise.ToolRequest{Name: toolName, Arguments: arguments, State: d.state, Config: d.config, NowMS: d.now})
	if err != nil {
		d.t.Fatal(err)
	}
	d.apply(r.Updates)
	return r.Message
}

func TestRepeatedCall(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for i, want := range []string{"false one", "true one"} {
		if cached, text := d.call(mortise.ToolRead, "read", "a", []string{"one", "two"}[i]); fmt.Sprint(cached, " ", text) != want {
			t.Errorf("call %d: %v %s", i, cached, text)
		}
	}
	if cached, _ := d.call(mortise.ToolRead, "read", "b", "x"); cached {
		t.Error("another path was answered from the cache")
	}
	if d.state[keyHits] != int64(1) {
		t.Errorf("hits %v", d.state[keyHits])
	}
}

// TestChangeForgets: what was read before a change may be wrong after it.
func TestChangeForgets(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.call(mortise.ToolRead, "read", "a", "one")
	d.call(mortise.ToolExecute, "bash", "make", "done")
	if cached, text := d.call(mortise.ToolRead, "read", "a", "two"); cached || text != "two" {
		t.Errorf("cached %v, %s", cached, text)
	}
}

func TestAgeAndSize(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.config = map[string]any{"max_age_minutes": int64(1), "max_bytes": int64(1024)}
	d.call(mortise.ToolRead, "read", "a", strings.Repeat("x", 400))
	d.call(mortise.ToolRead, "read", "b", strings.Repeat("x", 400))
	if cached, _ := d.call(mortise.ToolRead, "read", "a", "new"); !cached {
		t.Error("what has room is gone")
	}
	d.call(mortise.ToolRead, "read", "c", strings.Repeat("x", 400))
	if cached, _ := d.call(mortise.ToolRead, "read", "a", "new"); cached {
		t.Error("the oldest is kept beyond max_bytes")
	}
	d.now += 2 * msPerMinute
	if cached, _ := d.call(mortise.ToolRead, "read", "c", "new"); cached {
		t.Error("kept beyond max_age_minutes")
	}
}

func TestTool(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.call(mortise.ToolRead, "read", "a", "one")
	d.call(mortise.ToolSearch, "grep", "b", "two")
	d.now += 5000
	if got := d.tool(nil); got != "read {\"path\":\"a\"} (3 bytes, 5 s ago)\ngrep {\"path\":\"b\"} (3 bytes, 5 s ago)\n" {
		t.Errorf("%q", got)
	}
	if got := d.tool(map[string]any{"tool": "read", "forget": true}); got != "Forgot 1 results." {
		t.Errorf("%q", got)
	}
	if got := d.tool(map[string]any{"tool": "read"}); got != "Nothing is remembered. Known tools: grep." {
		t.Errorf("%q", got)
	}
	if cached, _ := d.call(mortise.ToolRead, "read", "a", "two"); cached {
		t.Error("a forgotten result was given")
	}
}

// TestForeignState: a value that memo did not write is no reason to fail.
func TestForeignState(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for _, v := range []any{"x", []any{"x", map[string]any{"at": "soon"}, map[string]any{}}, map[string]any{}} {
		d.state[keyCache] = v
		if cached, _ := d.call(mortise.ToolRead, "read", "a", "one"); cached {
			t.Errorf("%v was taken for a result", v)
		}
	}
}

// TestOnlyText: what would lose something in the cache is not kept.
func TestOnlyText(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]*mortise.ToolResult{
		"none":  nil,
		"error": {Status: mortise.ToolError, Message: "no"},
		"data":  {Status: mortise.ToolSuccess, Data: int64(1), Message: "1"},
		"image": {Status: mortise.ToolSuccess, Content: []mortise.ContentBlock{{Type: mortise.BlockImage, URL: "x"}}},
	} {
		if text, ok := textOf(r); ok {
			t.Errorf("%s: %q", name, text)
		}
	}
}

package main

import (
	"strconv"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

// run calls the guest as a host does and applies its updates to the state.
func run(t *testing.T, state map[string]any, e mortise.Event) mortise.Reply {
	t.Helper()
	e.ABI, e.State = 1, state
	in, err := mortise.Marshal(&e)
	if err != nil {
		t.Fatal(err)
	}
	p := plugin.Plugin{Description: description(), OnPhase: onPhase}
	out, err := p.Call("on_phase", in)
	if err != nil {
		t.Fatal(err)
	}
	var r mortise.Reply
	if err := mortise.Unmarshal(out, &r); err != nil {
		t.Fatal(err)
	}
	for _, u := range r.Updates {
		apply(state, u)
	}
	return r
}

func apply(state map[string]any, u mortise.Update) {
	switch u.Op {
	case mortise.OpAdd:
		n, _ := state[u.Key].(int64)
		d, _ := u.Value.(int64)
		state[u.Key] = n + d
	case mortise.OpMerge:
		m, ok := state[u.Key].(map[string]any)
		if !ok {
			m = map[string]any{}
			state[u.Key] = m
		}
		set, _ := u.Value.(map[string]any)
		for k, v := range set {
			m[k] = v
		}
	case mortise.OpRemove:
		m, _ := state[u.Key].(map[string]any)
		names, _ := u.Value.([]any)
		for _, n := range names {
			s, _ := n.(string)
			delete(m, s)
		}
	case mortise.OpSet, mortise.OpAppend:
	}
}

func tool(step int, name string, args any, result string) mortise.Event {
	return mortise.Event{
		Phase: mortise.AfterToolExecute, Step: step, Call: &mortise.ToolCall{ID: "c", Name: name, Arguments: args},
		Result: &mortise.ToolResult{Status: mortise.ToolSuccess, Content: []mortise.ContentBlock{mortise.Text(result)}},
	}
}

func TestIndex(t *testing.T) {
	t.Parallel()
	s := map[string]any{}
	run(t, s, tool(1, "Read", map[string]any{"file_path": "a/b.go"}, "package b\n\nfunc Open(x int) {}\ntype Box struct {\n"))
	run(t, s, tool(2, "read", `{"path": "a\/b.go", "limit": 3}`, ""))
	run(t, s, tool(3, "bash", map[string]any{"command": "cd x && sed -i 's/a/b/' a/b.go; cat README.md > out.txt | head; git diff -- c.py"}, "exit code: 2\nmain.go:3: Error: bad thing"))
	run(t, s, tool(4, "apply_patch", map[string]any{"input": "*** Update File: d.ts\n@@ -1 +1 @@ function render(a)\n+export class View {"}, "see https://example.org/x."))
	run(t, s, tool(5, "shell", map[string]any{"command": []any{"bash", "-lc", "go test ./..."}}, "ok"))
	for _, want := range []struct {
		table, name, field string
		value              int64
	}{
		{"files", "a/b.go", "read", 2},
		{"files", "a/b.go", "modified", 1},
		{"files", "a/b.go", "step", 3},
		{"files", "README.md", "read", 1},
		{"files", "out.txt", "modified", 1},
		{"files", "c.py", "read", 1},
		{"files", "d.ts", "modified", 1},
		{"commands", "git diff", "exit", 2},
		{"commands", "go test", "count", 1},
		{"identifiers", "Open", "step", 1},
		{"identifiers", "Box", "count", 1},
		{"identifiers", "render", "count", 1},
		{"identifiers", "View", "count", 1},
		{"urls", "https://example.org/x", "count", 1},
		{"errors", "main.go:3: Error: bad thing", "count", 1},
	} {
		if got := mortise.IntOr(mortise.MapOr(mortise.MapOr(s, want.table, nil)[want.name], "", nil)[want.field], "", -1); got != want.value {
			t.Errorf("%s %s %s: got %d, want %d", want.table, want.name, want.field, got, want.value)
		}
	}
	r := run(t, s, mortise.Event{Phase: mortise.RunEnd})
	if len(r.Effects) != 1 || r.Effects[0].EventType != "index.updated" || mortise.IntOr(r.Effects[0].Payload, "files", 0) != 5 || mortise.IntOr(r.Effects[0].Payload, "calls", 0) != 5 {
		t.Errorf("run_end: %+v", r.Effects)
	}
}

func TestBounded(t *testing.T) {
	t.Parallel()
	s := map[string]any{}
	for i := range 30 {
		e := tool(i, "read", map[string]any{"path": "f" + strconv.Itoa(i) + ".go"}, "")
		e.Config = map[string]any{"files": int64(10)}
		run(t, s, e)
	}
	files := mortise.MapOr(s, "files", nil)
	if len(files) != 10 || files["f29.go"] == nil || files["f20.go"] == nil || files["f19.go"] != nil {
		t.Errorf("%d files: %v", len(files), files)
	}
}

func TestHostileState(t *testing.T) {
	t.Parallel()
	for _, v := range []any{"text", int64(3), []any{"x"}, map[string]any{"a.go": "no map"}, map[string]any{"a.go": map[string]any{"read": "x"}}} {
		run(t, map[string]any{"files": v}, tool(1, "read", map[string]any{"path": "a.go"}, "\xff\xfe"))
	}
}

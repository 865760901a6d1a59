package main

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/examples/plugins/index/track"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// State keys.
const (
	keyFiles       = "files"
	keyCommands    = "commands"
	keyIdentifiers = "identifiers"
	keyURLs        = "urls"
	keyErrors      = "errors"
	keyCalls       = "calls"
	keyFailures    = "failures"
)

func tables() []string {
	return []string{keyFiles, keyCommands, keyIdentifiers, keyURLs, keyErrors}
}

// limit is how many entries a table holds by default.
func limit(key string) int64 {
	switch key {
	case keyFiles, keyIdentifiers:
		return 500
	case keyCommands:
		return 200
	}
	return 50
}

// index is the work on one event.
type index struct {
	step   int
	tables map[string]*track.Table
}

func newIndex(e *mortise.Event) *index {
	x := &index{step: e.Step, tables: map[string]*track.Table{}}
	for _, k := range tables() {
		n := mortise.IntOr(e.Config, k, limit(k))
		if n < 1 || n > 5000 {
			n = limit(k)
		}
		x.tables[k] = track.NewTable(e.State[k], int(n))
	}
	return x
}

func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	switch e.Phase {
	case mortise.AfterToolExecute:
		return afterTool(e), nil
	case mortise.AfterInference:
		if e.Response == nil {
			return nil, nil
		}
		x := newIndex(e)
		x.found(track.Text(e.Response.Message.Text()), false)
		return x.reply(nil), nil
	case mortise.RunEnd:
		return totals(e), nil
	default:
		return nil, nil
	}
}

func afterTool(e *mortise.Event) *mortise.Reply {
	if e.Call == nil {
		return nil
	}
	x := newIndex(e)
	text := resultText(e.Result)
	found := track.Text(text)
	failed := e.Result != nil && e.Result.Status == mortise.ToolError
	x.call(e.Call, found, failed)
	// A source file that was only read declares many names; its result counts.
	x.found(found, true)
	updates := []mortise.Update{{Key: keyCalls, Op: mortise.OpAdd, Value: int64(1)}}
	if failed {
		updates = append(updates, mortise.Update{Key: keyFailures, Op: mortise.OpAdd, Value: int64(1)})
	}
	return x.reply(updates)
}

func resultText(r *mortise.ToolResult) string {
	if r == nil {
		return ""
	}
	m := mortise.Message{Content: r.Content}
	if s := m.Text(); s != "" {
		return s
	}
	if s, ok := r.Data.(string); ok && r.Message == "" {
		return s
	}
	return r.Message
}

// call reads the arguments of a tool call, in the shapes that agents use.
func (x *index) call(c *mortise.ToolCall, found track.Found, failed bool) {
	args, _ := c.Arguments.(map[string]any)
	if s, ok := c.Arguments.(string); ok {
		args = track.Fields(s)
	}
	counter := "read"
	if modifies(c) {
		counter = "modified"
	}
	for key, v := range args {
		s, ok := v.(string)
		if !ok {
			x.list(key, v, counter, found, failed)
			continue
		}
		x.argument(key, s, counter, found, failed)
	}
}

// list reads a list argument: an argument vector, or several paths.
func (x *index) list(key string, v any, counter string, found track.Found, failed bool) {
	l, ok := v.([]any)
	if !ok {
		return
	}
	vector := make([]string, 0, len(l))
	for _, e := range l[:min(len(l), 100)] {
		switch e := e.(type) {
		case string:
			vector = append(vector, e)
		case map[string]any:
			for k, v := range e {
				if s, ok := v.(string); ok {
					x.argument(k, s, counter, found, failed)
				}
			}
		}
	}
	switch strings.ToLower(key) {
	case "command", "cmd":
		if len(vector) == 3 && strings.HasPrefix(vector[1], "-") && strings.HasSuffix(vector[1], "c") {
			vector = vector[2:]
		}
		x.command(strings.Join(vector, " "), found, failed)
	case "paths", "files", "file_paths":
		for _, p := range vector {
			x.file(p, counter)
		}
	}
}

func modifies(c *mortise.ToolCall) bool {
	if c.Kind == mortise.ToolEdit {
		return true
	}
	name := strings.ToLower(c.Name)
	return slices.ContainsFunc([]string{"edit", "write", "create", "patch", "replace", "insert", "delete"}, func(w string) bool { return strings.Contains(name, w) })
}

func (x *index) argument(key, s, counter string, found track.Found, failed bool) {
	switch strings.ToLower(key) {
	case "path", "file_path", "filepath", "filename", "file", "notebook_path", "target_file", "absolute_path":
		x.file(s, counter)
	case "command", "cmd", "script":
		x.command(s, found, failed)
	case "url", "uri", "href":
		x.found(track.Found{URLs: track.Text(s).URLs}, false)
	case "pattern", "symbol", "query":
		if len(s) >= 3 && len(s) <= 80 && !strings.ContainsAny(s, " \t\n*+?[](){}|\\^$/") {
			x.tables[keyIdentifiers].Touch(s, "count", x.step, nil)
		}
	default:
		x.found(track.Text(s), true)
	}
}

func (x *index) file(path, counter string) {
	if path == "" || len(path) > 300 || strings.ContainsAny(path, "\n\x00") {
		return
	}
	x.tables[keyFiles].Touch(strings.TrimPrefix(path, "./"), counter, x.step, nil)
}

// command notes programs and files. The exit status belongs to the last program.
func (x *index) command(s string, found track.Found, failed bool) {
	if len(s) > 32<<10 {
		s = s[:32<<10]
	}
	programs, read, modified := track.Command(s)
	for i, p := range programs[:min(len(programs), 20)] {
		extra := map[string]any{}
		if i == len(programs)-1 {
			switch {
			case found.HasExit:
				extra["exit"] = found.Exit
			case failed:
				extra["exit"] = int64(1)
			}
		}
		if len(p) <= 120 {
			x.tables[keyCommands].Touch(p, "count", x.step, extra)
		}
	}
	for _, p := range read[:min(len(read), 50)] {
		x.file(p, "read")
	}
	for _, p := range modified[:min(len(modified), 50)] {
		x.file(p, "modified")
	}
}

// found notes what a text mentions; patches count when the text was an argument
// or a result.
func (x *index) found(f track.Found, patches bool) {
	for _, s := range f.Identifiers {
		x.tables[keyIdentifiers].Touch(s, "count", x.step, nil)
	}
	for _, s := range f.URLs {
		x.tables[keyURLs].Touch(s, "count", x.step, nil)
	}
	if !patches {
		return
	}
	for _, s := range f.Errors {
		x.tables[keyErrors].Touch(s, "count", x.step, nil)
	}
	for _, s := range f.Modified {
		x.file(s, "modified")
	}
}

// reply turns the changed entries into updates.
func (x *index) reply(updates []mortise.Update) *mortise.Reply {
	for _, k := range tables() {
		set, remove := x.tables[k].Changes()
		if len(set) > 0 {
			updates = append(updates, mortise.Update{Key: k, Op: mortise.OpMerge, Value: set})
		}
		if len(remove) > 0 {
			names := make([]any, 0, len(remove))
			for _, n := range remove {
				names = append(names, n)
			}
			updates = append(updates, mortise.Update{Key: k, Op: mortise.OpRemove, Value: names})
		}
	}
	if len(updates) == 0 {
		return nil
	}
	return &mortise.Reply{Updates: updates}
}

// totals tells listeners how large the index is when a run ends.
func totals(e *mortise.Event) *mortise.Reply {
	payload := map[string]any{}
	for _, k := range tables() {
		m, _ := e.State[k].(map[string]any)
		payload[k] = int64(len(m))
	}
	payload[keyCalls] = mortise.IntOr(e.State[keyCalls], "", 0)
	payload[keyFailures] = mortise.IntOr(e.State[keyFailures], "", 0)
	return &mortise.Reply{Effects: []mortise.Effect{{
		Type: mortise.EffectEmit, EventType: "index.updated", Payload: payload, Note: "totals of the index",
	}}}
}

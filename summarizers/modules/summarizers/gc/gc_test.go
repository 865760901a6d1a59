package gc_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/gc"
)

// session makes conversations.
type session struct{ list []mortise.Message }

func (s *session) add(m mortise.Message) *mortise.Message {
	m.ID = fmt.Sprintf("x%d", len(s.list)+1)
	s.list = append(s.list, m)
	return &s.list[len(s.list)-1]
}

// call adds a call and its result, and returns the result's id.
func (s *session) call(tool, text string, args map[string]any) string {
	id := fmt.Sprintf("c%d", len(s.list))
	s.add(mortise.Message{Role: mortise.RoleAssistant, ToolCalls: []mortise.ToolCall{{ID: id, Name: tool, Arguments: args}}})
	return s.add(mortise.Message{Role: mortise.RoleTool, ToolCallID: id, Content: []mortise.ContentBlock{mortise.Text(text)}}).ID
}

func (s *session) read(path, text string) string {
	return s.call("read_file", text, map[string]any{"path": path})
}

// fail makes the newest result an error.
func (s *session) fail() {
	s.list[len(s.list)-1].Metadata = map[string]any{mortise.MetadataIsError: true}
}

func body(word string) string { return strings.Repeat("the word of this file is "+word+"\n", 40) }

// ask returns what is masked for which reason, if only what is dead need be.
func (s *session) ask(t *testing.T, goal int64) map[string]mortise.MaskReason {
	t.Helper()
	out := map[string]mortise.MaskReason{}
	r, err := gc.Summarize(&mortise.SummarizeRequest{Messages: s.list, Masking: &mortise.Masking{ViewTokens: 50_000, GoalTokens: goal}, Config: map[string]any{"alone": true}})
	if err != nil || r.Text != "" {
		t.Fatal(r, err)
	}
	for _, k := range r.Masks {
		out[k.MessageID] = k.Reason
	}
	return out
}

// TestDead: what is called dead is dead, and what only looks like it is not.
func TestDead(t *testing.T) {
	t.Parallel()
	edit := map[string]any{"path": "/w/a.go", "old": "x", "new": "y"}
	for name, c := range map[string]struct {
		later func(s *session)
		want  mortise.MaskReason
	}{
		"read again":          {func(s *session) { s.read("/w/a.go", body("one")) }, mortise.MaskSuperseded},
		"by another spelling": {func(s *session) { s.read("/w/b/../a.go", body("one")) }, mortise.MaskSuperseded},
		"changed between":     {func(s *session) { s.call("edit_file", "ok", edit); s.read("/w/a.go", body("two")) }, mortise.MaskSuperseded},
		"changed":             {func(s *session) { s.call("edit_file", "ok", edit) }, mortise.MaskInvalidated},
		"patched": {func(s *session) {
			s.call("shell", "Success", map[string]any{"command": "apply_patch <<'E'\n*** Begin Patch\n*** Update File: /w/a.go\nE"})
		}, mortise.MaskInvalidated},
		"same text elsewhere":  {func(s *session) { s.call("bash", body("one"), map[string]any{"command": "./show"}) }, mortise.MaskDuplicate},
		"nothing":              {func(*session) {}, ""},
		"another file":         {func(s *session) { s.read("/w/b.go", body("two")) }, ""},
		"another file changed": {func(s *session) { s.call("edit_file", "ok", map[string]any{"path": "/w/b.go"}) }, ""},
		"the change failed":    {func(s *session) { s.call("edit_file", "ok", edit); s.fail() }, ""},
		"it says that it did":  {func(s *session) { s.call("edit_file", "Error: no match", edit) }, ""},
		"the read failed":      {func(s *session) { s.read("/w/a.go", body("one")+"!"); s.fail() }, ""},
		"a stub":               {func(s *session) { s.read("/w/a.go", "File unchanged since last read.") }, ""},
		"a part": {func(s *session) {
			s.call("read_file", "part", map[string]any{"path": "/w/a.go", "offset": int64(9), "limit": int64(3)})
		}, ""},
		"no result": {func(s *session) {
			s.add(mortise.Message{Role: mortise.RoleAssistant, ToolCalls: []mortise.ToolCall{{ID: "z", Name: "edit_file", Arguments: edit}}})
		}, ""},
	} {
		s := &session{}
		first := s.read("/w/a.go", body("one"))
		c.later(s)
		if got := s.ask(t, 60_000)[first]; got != c.want {
			t.Errorf("%s: the first read is %q, want %q", name, got, c.want)
		}
	}
}

// TestParts: a part of a file is superseded by the same part, and by the whole if that has its lines.
func TestParts(t *testing.T) {
	t.Parallel()
	part := map[string]any{"path": "/w/a.go", "offset": int64(10), "limit": int64(20)}
	for name, c := range map[string]struct {
		tool, text string
		args       map[string]any
		want       mortise.MaskReason
	}{
		"same":        {"read_file", "now another", part, mortise.MaskSuperseded},
		"other limit": {"read_file", body("one"), map[string]any{"path": "/w/a.go", "offset": int64(10), "limit": int64(19)}, mortise.MaskDuplicate},
		"other part":  {"read_file", body("two"), map[string]any{"path": "/w/a.go", "offset": int64(30), "limit": int64(20)}, ""},
		"whole":       {"read_file", "start\n" + body("one") + "end", map[string]any{"path": "/w/a.go"}, mortise.MaskSuperseded},
		"cut whole":   {"read_file", "start", map[string]any{"path": "/w/a.go"}, ""},
	} {
		s := &session{}
		first := s.call("read_file", body("one"), part)
		s.call(c.tool, c.text, c.args)
		if got := s.ask(t, 60_000)[first]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestFolder: a relative name means the same file only in the same folder.
func TestFolder(t *testing.T) {
	t.Parallel()
	run := func(s *session, command, dir, text string) string {
		args := map[string]any{"command": command}
		if dir != "" {
			args["workdir"] = dir
		}
		return s.call("bash", text, args)
	}
	for name, c := range map[string]struct {
		first, between, second string
		dir, other             string
		want                   mortise.MaskReason
	}{
		"same":            {first: "cat a.go", second: "cat a.go", want: mortise.MaskSuperseded},
		"cd between":      {first: "cat a.go", between: "cd sub", second: "cat a.go"},
		"cd, absolute":    {first: "cd /w && cat a.go", between: "cd sub", second: "cd /w && cat a.go", want: mortise.MaskSuperseded},
		"other workdir":   {first: "cat a.go", second: "cat a.go", dir: "/w", other: "/v"},
		"same workdir":    {first: "cat a.go", second: "cat a.go", dir: "/w", other: "/w", want: mortise.MaskSuperseded},
		"it writes":       {first: "cat a.go > b", second: "cat a.go > b"},
		"in place":        {first: "sed -i -n p a.go", second: "sed -i -n p a.go"},
		"unknown program": {first: "make test", second: "make test"},
	} {
		s := &session{}
		first := run(s, c.first, c.dir, body("one"))
		if c.between != "" {
			run(s, c.between, c.dir, "")
		}
		run(s, c.second, c.other, body("two"))
		if got := s.ask(t, 60_000)[first]; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	s := &session{}
	first := s.read("a.go", body("one"))
	run(s, "cd sub", "", "")
	s.call("edit_file", "ok", map[string]any{"path": "a.go"})
	if got := s.ask(t, 60_000)[first]; got != "" {
		t.Errorf("a relative name after cd is %q", got)
	}
}

// TestFailedInput: the long arguments of a failed call go, its error stays; not where a provider may check them.
func TestFailedInput(t *testing.T) {
	t.Parallel()
	args := map[string]any{"path": "/w/a.go", "new": body("x")}
	s := &session{}
	s.call("edit_file", "ok", args)
	id := s.call("edit_file", "string not found", args)
	s.fail()
	if got := s.ask(t, 60_000); len(got) != 0 {
		t.Errorf("masked what was not tried again %v", got)
	}
	asked, failed := s.list[len(s.list)-2].ID, len(s.list)-2
	s.call("edit_file", "ok", map[string]any{"path": "/w/a.go"})
	if got := s.ask(t, 60_000); len(got) != 1 || got[asked] != mortise.MaskFailedInput || got[id] != "" {
		t.Errorf("masked %v", got)
	}
	s.list[failed+1].Content = []mortise.ContentBlock{mortise.Text("The user doesn't want to proceed with this tool use.")}
	if got := s.ask(t, 60_000); len(got) != 0 {
		t.Errorf("masked what the user refused %v", got)
	}
	s.list[failed+1].Content = []mortise.ContentBlock{mortise.Text("no match")}
	s.list[failed].Content = []mortise.ContentBlock{{Type: mortise.BlockThinking, Text: "hm", Signature: "s"}}
	if got := s.ask(t, 60_000); len(got) != 0 {
		t.Errorf("arguments with signed thoughts are masked: %v", got)
	}
}

// TestOrder: the dead go first, then what can be read again, the oldest first and no more than is needed.
func TestOrder(t *testing.T) {
	t.Parallel()
	s := &session{}
	var ids []string
	for i := range 5 {
		ids = append(ids, s.read(fmt.Sprintf("/w/%d.go", i), body(fmt.Sprint(i))))
	}
	kept := s.call("bash", body("test"), map[string]any{"command": "go test ./..."})
	dead := s.read("/w/d.go", body("d"))
	s.call("edit_file", "ok", map[string]any{"path": "/w/d.go"})
	s.list[slices.IndexFunc(s.list, func(m mortise.Message) bool { return m.ID == ids[1] })].Pinned = true
	got := s.ask(t, 50_000-800)
	want := map[string]mortise.MaskReason{dead: mortise.MaskInvalidated, ids[0]: mortise.MaskRefetchable, ids[2]: mortise.MaskRefetchable}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("masked %v, want %v", got, want)
	}
	if got := s.ask(t, 0); len(got) != 5 || got[kept] != "" {
		t.Errorf("masked %v", got)
	}
	never, err := gc.Summarize(&mortise.SummarizeRequest{Messages: s.list, Masking: &mortise.Masking{
		ViewTokens: 50_000, GoalTokens: 49_900, Never: []string{"read_file"}, Masked: []mortise.Mask{{MessageID: dead}},
	}})
	if err != nil || len(never.Masks) != 0 || never.Declined == "" {
		t.Errorf("%+v, %v", never, err)
	}
}

// TestDeclines: without a host that masks, and where masks are not enough.
func TestDeclines(t *testing.T) {
	t.Parallel()
	s := &session{}
	s.read("/w/a.go", body("one"))
	for name, m := range map[string]*mortise.Masking{"no host": nil, "not enough": {ViewTokens: 50_000, GoalTokens: 40_000}, "nothing": {ViewTokens: 50_000, GoalTokens: 60_000}} {
		r, err := gc.Summarize(&mortise.SummarizeRequest{Messages: s.list, Masking: m})
		if err != nil || r.Declined == "" || len(r.Masks) > 0 || r.Text != "" {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
}

// TestSound: in random sessions each mask is of a longer output that is not the newest of its file, has its reason in
// the log, and the same session gives the same masks.
func TestSound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &session{}
		for range 40 {
			file := fmt.Sprintf("/w/%d.go", r.IntN(4))
			switch r.IntN(4) {
			case 0:
				s.call("edit_file", []string{"ok", "error: no match"}[r.IntN(2)], map[string]any{"path": file, "new": body("n")})
			case 1:
				s.call("bash", body(fmt.Sprint(r.IntN(3))), map[string]any{"command": []string{"cd /w", "cat " + file, "go test"}[r.IntN(3)]})
			default:
				s.read(file, body(fmt.Sprint(seed, r.IntN(9))))
			}
		}
		at := map[string]int{}
		for i := range s.list {
			at[s.list[i].ID] = i
		}
		req := &mortise.SummarizeRequest{Messages: s.list, Masking: &mortise.Masking{ViewTokens: 20_000, GoalTokens: 60_000}}
		got, err := gc.Summarize(req)
		again, _ := gc.Summarize(req)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(again) {
			t.Fatal(seed, err)
		}
		for _, k := range got.Masks {
			m, by := &s.list[at[k.MessageID]], &s.list[at[k.By]]
			asked := func(id string) *mortise.ToolCall { return &s.list[at[id]-1].ToolCalls[0] }
			path := func(id string) any {
				args, _ := asked(id).Arguments.(map[string]any)
				return args["path"]
			}
			ok := at[k.By] > at[k.MessageID]
			switch k.Reason {
			case mortise.MaskDuplicate:
				ok = ok && m.Text() == by.Text()
			case mortise.MaskInvalidated:
				ok = ok && asked(k.By).Name == "edit_file" && by.Text() == "ok" && path(k.MessageID) == path(k.By)
			case mortise.MaskSuperseded:
				ok = ok && fmt.Sprint(asked(k.MessageID).Arguments) == fmt.Sprint(asked(k.By).Arguments)
			case mortise.MaskFailedInput:
				ok = ok && by.Text() == "ok" && s.list[at[k.MessageID]+1].Text() != "ok" && fmt.Sprint(m.ToolCalls[0].Arguments) == fmt.Sprint(asked(k.By).Arguments)
			default:
				ok = false
			}
			if !ok {
				t.Errorf("seed %d: %+v is not so", seed, k)
			}
		}
	}
}

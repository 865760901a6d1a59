package phases_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

func TestCheckStructure(t *testing.T) {
	t.Parallel()
	with := func(m abi.Message, change func(*abi.Message)) abi.Message {
		change(&m)
		return m
	}
	tests := map[string]struct {
		messages []abi.Message
		err      string
	}{
		"empty":            {nil, ""},
		"talk":             {[]abi.Message{user("a"), calls("b"), user("c")}, ""},
		"pair":             {[]abi.Message{user("a"), calls("b", "1"), result("c", "1"), user("d")}, ""},
		"results any way":  {[]abi.Message{calls("a", "1", "2"), result("b", "2"), result("c", "1")}, ""},
		"ids come again":   {[]abi.Message{calls("a", "1"), result("b", "1"), calls("c", "1"), result("d", "1")}, ""},
		"no id":            {[]abi.Message{user("a"), user("")}, "message 1: it has no id"},
		"same id":          {[]abi.Message{user("a"), user("b"), user("a")}, `message 2 "a": message 0 has the same id`},
		"role":             {[]abi.Message{with(user("a"), func(m *abi.Message) { m.Role = "king" })}, `message 0 "a": role "king"`},
		"user calls":       {[]abi.Message{with(calls("a", "1"), func(m *abi.Message) { m.Role = abi.RoleUser })}, "a user message cannot call tools"},
		"user answers":     {[]abi.Message{with(user("a"), func(m *abi.Message) { m.ToolCallID = "1" })}, "a user message cannot answer"},
		"tool without id":  {[]abi.Message{result("a", "")}, "must name the call"},
		"orphan result":    {[]abi.Message{user("a"), result("b", "1")}, `message 1 "b": it answers call "1"`},
		"answered twice":   {[]abi.Message{calls("a", "1"), result("b", "1"), result("c", "1")}, `message 2 "c": it answers call "1"`},
		"not adjacent":     {[]abi.Message{calls("a", "1"), user("b"), result("c", "1")}, `message 1 "b": it stands between a call and its result: message 0`},
		"open at the end":  {[]abi.Message{user("a"), calls("b", "1", "2"), result("c", "1")}, `message 1 "b": its call "2" has no result`},
		"call without id":  {[]abi.Message{calls("a", "")}, "its call 0 has no id"},
		"two equal calls":  {[]abi.Message{calls("a", "1", "1")}, `two of its calls have the id "1"`},
		"result too early": {[]abi.Message{result("a", "1"), calls("b", "1")}, `message 0 "a": it answers`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := phases.CheckStructure(test.messages)
			if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
				t.Errorf("error %v, want %q", err, test.err)
			}
		})
	}
}

// The guard: what a reply may not do to a conversation.
func TestStructureGuard(t *testing.T) {
	t.Parallel()
	const think = abi.BlockThinking
	thought := abi.Message{
		ID: "m4", Role: abi.RoleAssistant, Content: []abi.ContentBlock{{Type: think, Text: "hm", Signature: "s"}, abi.Text("so")},
	}
	pinned := user("m5")
	pinned.Pinned = true
	closed := []abi.Message{user("m1"), calls("m2", "1"), result("m3", "1"), thought, pinned}
	open := slices.Concat(closed, []abi.Message{calls("m6", "2", "3"), result("m7", "2")})
	add := func(ms ...abi.Message) abi.Effect {
		return abi.Effect{Type: abi.EffectAppendMessages, Messages: ms}
	}
	replace := func(id string, blocks ...abi.ContentBlock) abi.Effect {
		return abi.Effect{Type: abi.EffectReplaceMessage, MessageID: id, Content: blocks}
	}
	tests := map[string]struct {
		phase   abi.Phase
		open    bool
		effects []abi.Effect
		err     string
	}{
		"append":                  {effects: []abi.Effect{add(user("ignored"))}},
		"append a pair":           {effects: []abi.Effect{add(calls("", "9"), result("", "9"))}},
		"append at run end":       {phase: abi.RunEnd, effects: []abi.Effect{add(user(""))}},
		"append after inference":  {phase: abi.AfterInference, effects: []abi.Effect{add(user(""))}, err: "cannot be appended at after_inference"},
		"append at the gate":      {phase: abi.ToolGate, open: true, effects: []abi.Effect{add(user(""))}, err: "append at step_end"},
		"append between pairs":    {open: true, effects: []abi.Effect{add(user(""))}, err: "calls that wait for their results"},
		"append the result":       {open: true, effects: []abi.Effect{add(result("", "3"))}, err: "no assistant message directly before it"},
		"append an open call":     {effects: []abi.Effect{add(calls("", "9"))}, err: `its call "9" has no result`},
		"append an orphan":        {effects: []abi.Effect{add(result("", "1"))}, err: `it answers call "1"`},
		"append nothing":          {effects: []abi.Effect{add()}, err: "messages is missing"},
		"append empty":            {effects: []abi.Effect{add(abi.Message{Role: abi.RoleUser})}, err: "content is missing"},
		"append strange role":     {effects: []abi.Effect{add(abi.Message{Role: "king", Content: text("x")})}, err: `role "king"`},
		"append thinking":         {effects: []abi.Effect{add(abi.Message{Role: abi.RoleAssistant, Content: thought.Content})}, err: "thinking can be kept"},
		"append strange content":  {effects: []abi.Effect{add(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{{Type: "smell"}}})}, err: `type "smell"`},
		"append strange view":     {effects: []abi.Effect{add(abi.Message{Role: abi.RoleUser, Content: text("x"), Visibility: "hidden"})}, err: `visibility "hidden"`},
		"replace":                 {effects: []abi.Effect{replace("m3", abi.Text("short"))}},
		"replace in open step":    {phase: abi.BeforeToolExecute, open: true, effects: []abi.Effect{replace("m7", abi.Text("short"))}},
		"replace unknown":         {effects: []abi.Effect{replace("m9", abi.Text("x"))}, err: `there is no message "m9"`},
		"replace by nothing":      {effects: []abi.Effect{replace("m3")}, err: "to hide a message, mask it"},
		"replace pinned":          {effects: []abi.Effect{replace("m5", abi.Text("x"))}, err: `message "m5" is pinned`},
		"replace just pinned":     {effects: []abi.Effect{{Type: abi.EffectPinMessage, MessageID: "m1"}, replace("m1", abi.Text("x"))}, err: `message "m1" is pinned`},
		"keep thinking":           {effects: []abi.Effect{replace("m4", thought.Content[0], abi.Text("other"))}},
		"forge thinking":          {effects: []abi.Effect{replace("m4", abi.ContentBlock{Type: think, Text: "hm!", Signature: "s"})}, err: "thinking can be kept"},
		"mask":                    {effects: []abi.Effect{{Type: abi.EffectMaskMessage, MessageID: "m2", Text: "hidden"}}},
		"mask unknown":            {effects: []abi.Effect{{Type: abi.EffectMaskMessage, MessageID: "m9"}}, err: "there is no message"},
		"mask pinned":             {effects: []abi.Effect{{Type: abi.EffectMaskMessage, MessageID: "m5"}}, err: "is pinned"},
		"pin pinned":              {effects: []abi.Effect{{Type: abi.EffectPinMessage, MessageID: "m5"}}},
		"pin unknown":             {effects: []abi.Effect{{Type: abi.EffectPinMessage, MessageID: "m9"}}, err: "there is no message"},
		"one bad among good ones": {effects: []abi.Effect{add(user("")), replace("m1", abi.Text("x")), {Type: abi.EffectMaskMessage, MessageID: "m5"}}, err: "is pinned"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := step(0)
			f.Messages = closed
			if test.open {
				f.Messages = open
			}
			if test.phase != "" {
				f.Phase = test.phase
			}
			g := build(t, phases.Config{}, plug("p", abi.Hook{Phase: f.Phase}, effects(test.effects...)))
			out := g.fire(t, f)
			rec := g.only(t, "p")
			if test.err != "" {
				if len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, test.err) {
					t.Errorf("refused %+v, want a reason with %q", rec.Refused, test.err)
				}
				if len(out.Edits)+len(out.Appended) > 0 || &out.Messages[0] != &f.Messages[0] || len(out.Messages) != len(f.Messages) {
					t.Errorf("half of a refused reply was applied: %+v", out)
				}
				return
			}
			if rec.Err != "" {
				t.Fatal(rec.Err)
			}
			if err := phases.CheckStructure(out.Messages); err != nil && !test.open {
				t.Error(err)
			}
		})
	}
}

// What an appended message is like.
func TestAppendedMessage(t *testing.T) {
	t.Parallel()
	mine := abi.Message{
		ID: "m1", Role: abi.RoleUser, Content: text("hello"), Visibility: abi.VisibilityInternal, Pinned: true,
		Metadata: map[string]any{"by": "somebody else", "why": "test"},
	}
	g := build(t, phases.Config{}, plug("p", abi.Hook{Phase: abi.BeforeInference}, effects(abi.Effect{Type: abi.EffectAppendMessages, Messages: []abi.Message{mine}})))
	f := step(2)
	out := g.fire(t, f)
	if got := ids(out.Messages); got != "m1 m2 new1" || len(f.Messages) != 2 || ids(out.Appended) != "new1" {
		t.Fatalf("messages %q, appended %q", got, ids(out.Appended))
	}
	m := out.Appended[0]
	if m.Metadata[phases.MetadataBy] != "p" || m.Metadata["why"] != "test" || !m.Pinned || m.Visibility != abi.VisibilityInternal {
		t.Errorf("appended %+v", m)
	}
	if mine.Metadata["by"] != "somebody else" {
		t.Error("the plugin's own map was changed")
	}
}

// A transform may change the result before its message is in the list.
func TestResultMessage(t *testing.T) {
	t.Parallel()
	h := abi.Hook{Phase: abi.AfterToolExecute}
	g := build(t, phases.Config{},
		plug("a", h, effects(abi.Effect{Type: abi.EffectReplaceMessage, MessageID: "m9", Content: text("redacted")})),
		plug("b", h, effects(abi.Effect{Type: abi.EffectPinMessage, MessageID: "m9"})))
	f := phases.Frame{
		Phase: abi.AfterToolExecute, Messages: []abi.Message{calls("m1", "1")}, ResultMessageID: "m9",
		Call: &abi.ToolCall{ID: "1", Name: "tool"}, Result: &abi.ToolResult{Status: abi.ToolSuccess, Content: text("secret")},
	}
	out := g.fire(t, f)
	if len(out.Messages) != 1 || len(out.Edits) != 2 {
		t.Fatalf("outcome %+v", out)
	}
	m := out.Edits[1].Message
	if m.ID != "m9" || m.Role != abi.RoleTool || m.ToolCallID != "1" || m.Text() != "redacted" || !m.Pinned {
		t.Errorf("the message is %+v", m)
	}
	if f.Result.Content[0].Text != "secret" {
		t.Error("the frame's result was changed")
	}
}

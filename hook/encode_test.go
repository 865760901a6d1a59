package hook_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/hook"
)

// codexKeys are all keys that Codex 0.169.0 takes in the answer to an event, by its published schemas and by runs of
// it: one more key and it drops the whole answer.
func codexKeys() map[string][]string {
	return map[string][]string{
		"PreToolUse": {
			specific, specific + ".hookEventName", specific + ".permissionDecision", specific + ".permissionDecisionReason",
			specific + ".updatedInput", specific + ".additionalContext",
		},
		"PostToolUse":      {"decision", "reason", specific, specific + ".hookEventName", specific + ".additionalContext"},
		"UserPromptSubmit": {"decision", "reason", specific, specific + ".hookEventName", specific + ".additionalContext"},
		"SessionStart":     {specific, specific + ".hookEventName", specific + ".additionalContext"},
		"Stop":             {"decision", "reason"},
		"SubagentStop":     {"decision", "reason"},
		"PreCompact":       {"continue", "stopReason"},
		"PostCompact":      {},
	}
}

// randomAnswer is any combination of decisions.
func randomAnswer(r *rand.Rand) *hook.Answer {
	a := &hook.Answer{}
	text := func() *string {
		s := []string{"because", "", "  ", "<b>&\u2028\"", strings.Repeat("long ", 500)}[r.IntN(5)]
		return &s
	}
	some := func() bool { return r.IntN(3) == 0 }
	if some() {
		a.Deny = text()
	}
	if some() {
		a.Suspend = &hook.Suspension{Reason: *text(), Ticket: "0badcafe", Headless: some()}
	}
	a.Approve = some()
	if some() {
		a.Rewrite = map[string]any{"command": *text()}
	}
	if some() {
		a.Replace, a.ReplaceText = map[string]any{"stdout": *text()}, *text()
	}
	if some() {
		a.Context = []string{*text(), *text()}
	}
	if some() {
		a.Stop = text()
	}
	if some() {
		a.Continue = text()
	}
	if some() {
		a.Veto = text()
	}
	if some() {
		a.Focus = "names"
	}
	return a
}

func keysOf(v any, prefix string) []string {
	m, ok := v.(map[string]any)
	if !ok || strings.Contains(prefix, "updatedInput") {
		return nil
	}
	var out []string
	for k, inner := range m {
		out = append(out, prefix+k)
		out = append(out, keysOf(inner, prefix+k+".")...)
	}
	return out
}

// TestEncode_codexKeys: whatever plugins decide, Codex gets no key that it does not take, an allow only together with a
// rewrite, and a block only with a reason.
func TestEncode_codexKeys(t *testing.T) {
	t.Parallel()
	d, err := hook.DialectOf("codex")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // a test
	for event, allowed := range codexKeys() {
		for range 2000 {
			_, m := encoded(t, d, event, randomAnswer(r))
			for _, k := range keysOf(m, "") {
				if !slices.Contains(allowed, strings.TrimSuffix(k, ".")) && !strings.HasPrefix(k, specific+".updatedInput.") {
					t.Fatalf("%s: key %s", event, k)
				}
			}
			if (at(m, specific, "permissionDecision") == "allow") != (at(m, specific, "updatedInput") != nil) {
				t.Fatalf("%s: allow and updatedInput belong together: %v", event, m)
			}
			if reason, _ := m["reason"].(string); m["decision"] == "block" && strings.TrimSpace(reason) == "" {
				t.Fatalf("%s: a block needs a reason: %v", event, m)
			}
		}
	}
}

func encoded(t *testing.T, d *hook.Dialect, event string, a *hook.Answer) (string, map[string]any) {
	t.Helper()
	spec, err := d.Event(event)
	if err != nil {
		t.Fatal(err)
	}
	e := &hook.Event{Dialect: d, Spec: spec}
	out, _, err := e.Encode(a)
	if err != nil {
		t.Fatal(err)
	}
	if out == "" || spec.PlainFocus && !strings.HasPrefix(out, "{") {
		return out, nil
	}
	var m map[string]any
	dec := json.NewDecoder(strings.NewReader(out))
	if err := dec.Decode(&m); err != nil || dec.More() || strings.ContainsRune(out, '\n') {
		t.Fatalf("%s %s: %q is not one object on one line: %v", d.Name, event, out, err)
	}
	return out, m
}

// TestEncode_oneObject: every dialect gets one JSON object or nothing, and "allow" only where a plugin approves or Codex
// rewrites. A decision without a form is named.
func TestEncode_oneObject(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // a test
	for _, name := range hook.Dialects() {
		d, err := hook.DialectOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for event, spec := range d.Events {
			for range 300 {
				a := randomAnswer(r)
				out, _ := encoded(t, d, event, a)
				if strings.Contains(out, `"allow"`) && !a.Approve && name != "codex" {
					t.Fatalf("%s %s: %s", name, event, out)
				}
				if name == "goose" && out == "{}" {
					t.Fatal("goose takes {} as a failure")
				}
			}
			e := &hook.Event{Dialect: d, Spec: spec}
			reason := "r"
			_, unsupported, err := e.Encode(&hook.Answer{Deny: &reason, Stop: &reason, Continue: &reason, Veto: &reason, Focus: "f", Context: []string{"c"}})
			if err != nil {
				t.Fatal(err)
			}
			for form, what := range map[hook.Form]string{
				hook.FormDeny: "block", hook.FormContinue: "continue", hook.FormVeto: "veto_compaction", hook.FormFocus: "focus_compaction", hook.FormContext: "add_context",
			} {
				if spec.Has(form) == slices.Contains(unsupported, what) {
					t.Errorf("%s %s: %s supported %v, unsupported %v", name, event, form, spec.Has(form), unsupported)
				}
			}
		}
	}
}

// TestPolicy_closed: without plugins a gate that fails closed denies, and a result that can be replaced is withheld, in the shape of
// the dialect; open events are left alone.
func TestPolicy_closed(t *testing.T) {
	t.Parallel()
	for _, name := range append(hook.Dialects(), "mcp") {
		d, err := hook.DialectOf(name)
		if err != nil {
			t.Fatal(err)
		}
		for event, spec := range d.Events {
			if out, ok := d.PolicyOutput(spec, false, "late"); out != d.Noop || !ok {
				t.Errorf("%s %s, open: %s", name, event, out)
			}
			out, ok := d.PolicyOutput(spec, true, "late")
			if decides := spec.Gate || spec.Has(hook.FormReplace); decides && (!ok || !strings.Contains(out, "late")) {
				t.Errorf("%s %s, closed: %s", name, event, out)
			}
		}
	}
	stop := "enough"
	for dialect, want := range map[string]string{
		"pi": `{"content":[{"text":"enough","type":"text"}]}`, "mcp": `{"deny":"enough"}`,
		"codex": `{"decision":"block","reason":"enough"}`,
	} {
		d, err := hook.DialectOf(dialect)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range d.Events {
			if spec.Kind != hook.EventPost {
				continue
			}
			if out, _, err := (&hook.Event{Dialect: d, Spec: spec}).Encode(&hook.Answer{Stop: &stop}); err != nil || out != want {
				t.Errorf("%s: %v %s", dialect, err, out)
			}
		}
	}
}

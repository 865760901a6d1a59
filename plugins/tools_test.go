package plugins_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

func teller(t *testing.T) *plugins.Tools {
	t.Helper()
	set, err := load(t, newHost(t), plugins.Entry{Module: module("teller")})
	if err != nil {
		t.Fatal(err)
	}
	tools, err := set.Tools()
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

func TestToolsOfAGuest(t *testing.T) {
	t.Parallel()
	tools := teller(t)
	if list := tools.Tools(); len(list) != 7 || list[0].Name != "sum" || list[0].Kind != abi.ToolRead || list[0].Parameters == nil {
		t.Fatalf("tools %+v", list)
	}
	values := func(v ...any) map[string]any { return map[string]any{"values": v} }
	for name, c := range map[string]struct {
		tool      string
		arguments any
		status    abi.ToolStatus
		says      string
		fails     string
	}{
		"good":              {"sum", values(int64(1), int64(41)), abi.ToolSuccess, "map[total:42]", ""},
		"wrong type":        {"sum", values("one"), abi.ToolError, "Invalid arguments: at '/values/0': got string, want integer", ""},
		"missing":           {"sum", nil, abi.ToolError, "Invalid arguments: at '': missing property 'values'", ""},
		"one too many":      {"sum", map[string]any{"values": []any{}, "more": int64(1)}, abi.ToolError, "Invalid arguments: at '': additional properties 'more' not allowed", ""},
		"not JSON":          {"sum", `{"values": [1`, abi.ToolError, "Invalid arguments: at '': got string, want object", ""},
		"without schema":    {"pay", "anything", abi.ToolPending, "how much?", ""},
		"a guest's no":      {"break", nil, abi.ToolError, "not today", ""},
		"a trap":            {"trap", nil, "", "", "fell over"},
		"an impossible one": {"lie", nil, "", "", `status "wonderful" is not one of`},
		"an unknown one":    {"gone", nil, "", "", "tool 'gone' not found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := tools.CallTool(t.Context(), abi.ToolCall{ID: "c1", Name: c.tool, Arguments: c.arguments})
			if c.fails != "" {
				if err == nil && (r.Status != abi.ToolError || !strings.Contains(r.Message, c.fails)) || err != nil && !strings.Contains(err.Error(), c.fails) {
					t.Errorf("result %+v, error %v", r, err)
				}
				return
			}
			if said := r.Message + fmt.Sprint(r.Data); err != nil || r.Status != c.status || !strings.Contains(said, c.says) || r.CallID != "c1" || r.ToolName != c.tool {
				t.Errorf("result %+v, error %v", r, err)
			}
		})
	}
}

func TestToolsOfTwoPluginsMustDiffer(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Module: module("teller")}, plugins.Entry{Name: "other", Module: module("teller")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := set.Tools(); err == nil || !strings.Contains(err.Error(), `"other": tool already registered: sum: plugin "teller" has one`) {
		t.Errorf("error %v", err)
	}
	if _, err := agent.JoinTools(teller(t), teller(t)); err == nil || !strings.Contains(err.Error(), "tool already registered: sum") {
		t.Errorf("error %v", err)
	}
}

// listed is a model that makes the listed calls, one in each step.
type listed struct{ calls []abi.ToolCall }

func (l *listed) Infer(context.Context, llm.Request) (*abi.Response, error) {
	out := &abi.Response{Model: "listed", Usage: &abi.Usage{TotalTokens: 3}, Message: abi.Message{Content: []abi.ContentBlock{abi.Text("so be it")}}}
	if len(l.calls) > 0 {
		out.Message.ToolCalls, l.calls = l.calls[:1], l.calls[1:]
	}
	return out, nil
}

// TestGuestAsksForADecision: a tool in a guest suspends the run, and is called again
// with what was decided.
func TestGuestAsksForADecision(t *testing.T) {
	t.Parallel()
	tools, err := agent.JoinTools(answers{}, teller(t))
	if err != nil {
		t.Fatal(err)
	}
	rt, err := phases.New(phases.Config{})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{Profile: agent.Profile{Model: &listed{calls: []abi.ToolCall{{ID: "c1", Name: "pay"}}}, Phases: rt, Tools: tools}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := a.Run(t.Context(), agent.Request{ThreadID: "t", Messages: question()})
	if err != nil || len(r.Tickets) != 1 || r.Tickets[0].ID != "pay_c1" || r.Tickets[0].Reason != "how much?" {
		t.Fatalf("result %+v, error %v", r, err)
	}
	decision := agent.Decision{Target: "pay_c1", Action: agent.ActionResume, Result: int64(5)}
	r, err = a.Run(t.Context(), agent.Request{ThreadID: "t", Decisions: []agent.Decision{decision}})
	log := a.Thread("t").Messages()
	if err != nil || r.Status != agent.StatusDone || log[2].Text() != "paid 5 with key true" {
		t.Errorf("result %+v, error %v, tool %q", r, err, log[2].Text())
	}
}

// TestToolsOfSomePlugins: a filter takes the tools of the others away, and a caller of
// one gets the result that it is not there.
func TestToolsOfSomePlugins(t *testing.T) {
	t.Parallel()
	all := teller(t)
	if owner := all.Owner("sum"); owner != "teller" || all.Owner("gone") != "" {
		t.Errorf("owner %q", owner)
	}
	if own := all.Of("guard", "teller"); len(own.Tools()) != len(all.Tools()) || own.Owner("sum") != "teller" {
		t.Errorf("of the plugin itself: %+v", own.Tools())
	}
	none := all.Of("guard")
	if _, err := none.CallTool(t.Context(), abi.ToolCall{ID: "c1", Name: "sum"}); err == nil || !strings.Contains(err.Error(), "tool 'sum' not found") || len(none.Tools()) != 0 {
		t.Errorf("of another one: %+v, error %v", none.Tools(), err)
	}
}

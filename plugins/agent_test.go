package plugins_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

// Credentials that were made up for these tests.
const (
	awsKey   = "AKIAQ7WZ3LMN5RTB2XKD"
	token    = "ghp_R4k9Tz2WmQx7LbV1nYc8HsJ5dFgA3pE6uKoM"
	password = "Tr0ub4dor-7291"
	dotEnv   = "AWS_ACCESS_KEY_ID=" + awsKey + "\ntoken " + token + "\n" +
		"DATABASE_URL=postgres://billing:" + password + "@db.staging.internal:5432/billing\nLOG_LEVEL=debug\n"
)

// asks is a model that runs one command after the other.
type asks struct {
	commands []string
	asked    int
	read     strings.Builder
}

func (m *asks) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	for i := range r.Messages {
		m.read.WriteString(r.Messages[i].Text())
	}
	if m.asked == len(m.commands) {
		return &abi.Response{Message: abi.Message{Content: []abi.ContentBlock{abi.Text("done")}}}, nil
	}
	call := abi.ToolCall{ID: fmt.Sprint("c", m.asked), Name: "Bash", Arguments: map[string]any{"command": m.commands[m.asked]}}
	m.asked++
	return &abi.Response{Message: abi.Message{ToolCalls: []abi.ToolCall{call}}}, nil
}

// answers is a tool runner that leaks, in the way that the command names.
type answers struct{}

func (answers) Tools() []abi.Tool { return []abi.Tool{{Name: "Bash", Kind: abi.ToolExecute}} }

func (answers) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	arguments, _ := call.Arguments.(map[string]any)
	switch arguments["command"] {
	case "cat content.env":
		return abi.ToolResult{Content: []abi.ContentBlock{abi.Text(dotEnv)}}, nil
	case "cat message.env":
		return abi.ToolResult{Message: dotEnv}, nil
	case "cat data.env":
		return abi.ToolResult{Data: map[string]any{"env": dotEnv}}, nil
	case "cat error.env":
		return abi.ToolResult{}, errors.New("cannot parse: " + dotEnv)
	default:
		return abi.ToolResult{Content: []abi.ContentBlock{abi.Text("fine")}}, nil
	}
}

func question() []abi.Message {
	return []abi.Message{{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Clean up, please.")}}}
}

// together runs commands with the three guests.
func together(t *testing.T, commands ...string) (*asks, *agent.Agent, agent.Result, []agent.Event) {
	t.Helper()
	set, err := load(t, newHost(t),
		plugins.Entry{Module: module("redact")}, plugins.Entry{Module: module("index")}, plugins.Entry{Module: module("guard")})
	if err != nil {
		t.Fatal(err)
	}
	rt, err := phases.New(phases.Config{Plugins: set.Plugins(), HookTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	model := &asks{commands: commands}
	var events []agent.Event
	a, err := agent.New(agent.Config{
		Profile: agent.Profile{Model: model, Tools: answers{}, Phases: rt}, Listen: func(_ context.Context, e agent.Event) { events = append(events, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	result, err := a.Run(t.Context(), agent.Request{ThreadID: "t", Messages: question()})
	if err != nil {
		t.Fatal(err)
	}
	if err := phases.CheckStructure(a.Thread("t").Messages()); err != nil {
		t.Error(err)
	}
	return model, a, result, events
}

func TestDangerousCommandIsBlocked(t *testing.T) {
	t.Parallel()
	_, a, result, events := together(t, "ls", "rm -rf / --no-preserve-root", "ls")
	if result.Termination.Type != agent.Blocked || !strings.Contains(result.Termination.Detail, "recursive_delete") {
		t.Errorf("termination %+v", result.Termination)
	}
	log := a.Thread("t").Messages()
	if got := log[len(log)-1].Text(); !strings.HasPrefix(got, "Denied: ") {
		t.Errorf("the model receives %q", got)
	}
	for _, e := range events {
		if e.Type == agent.EventPhase && e.Phase == abi.BeforeToolExecute && e.Step == 2 {
			t.Error("the blocked call got to before_tool_execute")
		}
	}
}

// TestNobodySeesALeakedCredential: not the model, the log, the listener or the
// state, in whatever way the tool leaks.
func TestNobodySeesALeakedCredential(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"content", "message", "data", "error"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			model, a, result, events := together(t, "cat "+way+".env")
			if result.Termination.Type != agent.NaturalEnd {
				t.Fatalf("termination %+v", result.Termination)
			}
			heard := ""
			for _, e := range events {
				if e.Result != nil {
					heard += fmt.Sprintf("%+v", *e.Result)
				}
			}
			seen := map[string]string{
				"model": model.read.String(), "log": fmt.Sprint(a.Thread("t").Messages()),
				"listener": heard, "state": fmt.Sprint(a.Thread("t").State()),
			}
			for who, text := range seen {
				for name, secret := range map[string]string{"aws key": awsKey, "token": token, "password": password} {
					if strings.Contains(text, secret) {
						t.Errorf("the %s sees the %s", who, name)
					}
				}
			}
			if !strings.Contains(seen["model"], "[REDACTED:") || !strings.Contains(seen["model"], "LOG_LEVEL") {
				t.Errorf("the model reads %q", seen["model"])
			}
		})
	}
}

func TestIndexStateIsInTheThread(t *testing.T) {
	t.Parallel()
	_, a, _, _ := together(t, "cat go.mod", "ls")
	found := ""
	for key, value := range a.Thread("t").State() {
		if strings.HasPrefix(key, "index/") {
			found += fmt.Sprintf("%s=%v\n", key, value)
		}
	}
	if !strings.Contains(found, "go.mod") {
		t.Errorf("the index does not know go.mod:\n%s", found)
	}
}

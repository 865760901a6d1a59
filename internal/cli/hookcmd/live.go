package hookcmd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	hooklive "github.com/mortise-dev/mortise/hook/live"
	"github.com/mortise-dev/mortise/internal/cli/check"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
)

// What the live proof looks for.
const (
	liveBlocked = "mortise-live-blocked"
	liveBefore  = "mortise-live-before"
	liveAfter   = "mortise-live-after"
	liveSecret  = "mortise-live-secret-4711" //nolint:gosec // no credential
	liveMasked  = "mortise-live-redacted"
)

// live runs the installed agent with three plugins of the proof's own, in a home of its own.
func (o *installOptions) live(ctx context.Context) ([]check.Finding, error) {
	name := o.agent.Dialect.Name
	path, err := exec.LookPath(o.agent.Command)
	if err != nil {
		return nil, fmt.Errorf("%s is not in PATH", o.agent.Command)
	}
	if !hooklive.Runs(name) {
		return nil, errNotLive
	}
	dir, err := os.MkdirTemp("", "mlive")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	commands := []string{"touch " + liveBlocked, "touch " + liveBefore, "cat secret.txt"}
	r, err := hooklive.New(ctx, hooklive.Config{
		Dialect: name, Program: path, Client: o.clientP, Dir: dir, Plugins: livePlugins(),
		Reply: func(q providertest.Query) providertest.Answer { return liveReply(name, commands, q) },
	})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if err := os.WriteFile(filepath.Join(r.Project(), "secret.txt"), []byte(liveSecret+"\n"), 0o600); err != nil {
		return nil, err
	}
	var more []string
	if name == "claude" {
		more = []string{"--allowedTools", "Bash"}
	}
	out, err := r.Run(ctx, "go", more...)
	if err != nil {
		return nil, err
	}
	found := liveFindings(r, out)
	if !slices.ContainsFunc(slices.Collect(maps.Values(o.agent.Dialect.Events)), func(e *hook.EventSpec) bool { return e.Has(hook.FormRewrite) }) {
		found[liveRewrite] = check.Warned("mortise proxy rewrites calls of every agent", "%s lets no hook rewrite a call", o.agent.Dialect.Agent)
		found[liveRewrite].Check = "live: rewrite"
	}
	return found, nil
}

// liveRewrite is the place of the rewrite among the findings.
const liveRewrite = 1

// liveFindings is what the run came to.
func liveFindings(r *hooklive.Rig, out *hooklive.Result) []check.Finding {
	var sent strings.Builder
	for _, q := range r.Queries() {
		sent.Write(q.Body)
	}
	there := func(name string) bool {
		_, err := os.Stat(filepath.Join(r.Project(), name))
		return err == nil
	}
	judge := func(name string, ok bool, good, bad string) check.Finding {
		f := check.Fine("%s", good)
		if !ok {
			f = check.Failed("the agent may be too new or too old for this version of mortise", fmt.Errorf("%s; exit %d: %s", bad, out.Exit, term.Clip(out.Stderr, 300)))
		}
		f.Check = "live: " + name
		return f
	}
	return []check.Finding{
		judge("block", !there(liveBlocked) && strings.Contains(sent.String(), "blocked by the proof"), "a call was blocked, and the model read why", "the call was not blocked"),
		judge("rewrite", there(liveAfter) && !there(liveBefore), "a call was rewritten, and ran so", "the call was not rewritten"),
		judge("redaction", strings.Contains(sent.String(), liveMasked) && !strings.Contains(sent.String(), liveSecret),
			"a secret in a result did not reach the model", "the result was not replaced"),
	}
}

// liveReply makes one call after another.
func liveReply(agent string, commands []string, q providertest.Query) providertest.Answer {
	n := 0
	for i := range q.Messages {
		if q.Messages[i].Role == abi.RoleTool {
			n++
		}
	}
	if n >= len(commands) || len(q.Tools) == 0 {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
	}
	return providertest.Answer{Calls: []abi.ToolCall{hooklive.Shell(agent, fmt.Sprint("toolu_", n), commands[n])}}
}

// livePlugin is one of the proof's plugins.
type livePlugin struct {
	name string
	hook abi.Hook
	fn   func(e *abi.Event, args map[string]any, line string) *abi.Reply
}

// Describe implements phases.Plugin.
func (l *livePlugin) Describe() abi.Description {
	return abi.Description{Name: l.name, Version: "1", Hooks: []abi.Hook{l.hook}}
}

// OnPhase implements phases.Plugin.
func (l *livePlugin) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	if e.Call == nil {
		return nil, errors.New("the event has no call")
	}
	args, _ := e.Call.Arguments.(map[string]any)
	line, _ := args["command"].(string)
	return l.fn(e, args, line), nil
}

func livePlugins() []phases.Plugin {
	return []phases.Plugin{
		&livePlugin{"proof-guard", abi.Hook{Phase: abi.ToolGate, Mode: abi.ModeGate}, func(_ *abi.Event, _ map[string]any, line string) *abi.Reply {
			if !strings.Contains(line, liveBlocked) {
				return nil
			}
			return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "blocked by the proof"}}
		}},
		&livePlugin{"proof-rewrite", abi.Hook{Phase: abi.BeforeToolExecute, Mode: abi.ModeTransform}, func(_ *abi.Event, args map[string]any, line string) *abi.Reply {
			if !strings.Contains(line, liveBefore) {
				return nil
			}
			args["command"] = strings.ReplaceAll(line, liveBefore, liveAfter)
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: args}}}
		}},
		&livePlugin{"proof-redact", abi.Hook{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform}, func(e *abi.Event, _ map[string]any, _ string) *abi.Reply {
			content := make([]abi.ContentBlock, len(e.Result.Content))
			for i, c := range e.Result.Content {
				c.Text = strings.ReplaceAll(c.Text, liveSecret, liveMasked)
				content[i] = c
			}
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: content}}}
		}},
	}
}

package main

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/examples/plugins/guard/rules"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// onPhase blocks a call whose command a rule forbids, and has no opinion
// otherwise.
func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	if e.Phase != mortise.ToolGate || e.Call == nil || !watched(e.Config, e.Call) {
		return nil, nil
	}
	judge := rules.New(config(e.Config))
	for _, text := range commands(e.Config, e.Call.Arguments) {
		if f := judge.Script(text); f != nil {
			return &mortise.Reply{
				Gate:    &mortise.GateDecision{Action: mortise.GateBlock, Reason: "guard: rule " + f.Rule + " forbids: " + f.Part},
				Updates: []mortise.Update{{Key: f.Rule, Op: mortise.OpAdd, Value: int64(1)}},
			}, nil
		}
	}
	return nil, nil
}

func config(v any) rules.Config {
	c := rules.Config{
		Allow:    mortise.StringsOr(v, "allow", nil),
		Disable:  mortise.StringsOr(v, "disable", nil),
		Enable:   mortise.StringsOr(v, "enable", nil),
		Branches: mortise.StringsOr(v, "branches", nil),
	}
	for _, r := range mortise.ListOr(v, "rules", nil) {
		c.Custom = append(c.Custom, rules.Custom{
			Name:    mortise.StringOr(r, "name", ""),
			Command: mortise.StringOr(r, "command", ""),
			Flags:   mortise.StringsOr(r, "flags", nil),
			Prefixs: mortise.StringsOr(r, "argument_prefixes", nil),
		})
	}
	return c
}

// watched reports tools that carry shell commands: by name, or by their kind.
func watched(config any, c *mortise.ToolCall) bool {
	names := mortise.StringsOr(config, "tools", []string{
		"bash", "shell", "execute", "run_command", "terminal", "exec", "execute_command", "run_shell_command", "run_terminal_cmd",
	})
	return c.Kind == mortise.ToolExecute || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, c.Name) })
}

// commands are the texts that the call would run. Arguments that are no object
// are a command as a whole. A list is an argument vector.
func commands(config, args any) []string {
	m, ok := args.(map[string]any)
	if !ok {
		return text(args)
	}
	var out []string
	for _, name := range mortise.StringsOr(config, "arguments", []string{"command", "cmd", "script", "input", "commands", "code"}) {
		out = append(out, text(m[name])...)
	}
	return out
}

func text(v any) []string {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		words := make([]string, 0, len(v))
		out := []string{""}
		for _, e := range v {
			if s, ok := e.(string); ok {
				words = append(words, quote(s))
				out = append(out, s)
			}
		}
		// Either an argument vector or a list of commands: both readings count.
		out[0] = strings.Join(words, " ")
		return out
	}
	return nil
}

// quote makes one shell word of s.
func quote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

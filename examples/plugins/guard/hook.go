package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/examples/plugins/guard/rules"
	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// onPhase blocks a call whose command a rule forbids, and has no opinion
// otherwise.
func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	if e.Phase != mortise.ToolGate || e.Call == nil {
		return nil, nil
	}
	judge := rules.New(config(e.Config))
	for _, text := range commands(e.Config, e.Call) {
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

// shell reports a tool that carries shell commands: by its kind, or by its name, which behind the server's is that of an MCP server's.
func shell(config any, c *mortise.ToolCall) bool {
	names := mortise.StringsOr(config, "tools", []string{
		"bash", "shell", "execute", "run_command", "terminal", "exec", "execute_command", "run_shell_command", "run_terminal_cmd",
		"exec_command", "local_shell", "shell_command", "unified_exec", "write_stdin", "run_in_terminal",
	})
	name := c.Name
	if i := strings.LastIndex(name, "__"); i >= 0 {
		name = name[i+len("__"):]
	}
	return c.Kind == mortise.ToolExecute || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, c.Name) || strings.EqualFold(n, name) })
}

// commands are the texts that the call would run. Arguments that are no object are a command as a whole, and a list is an
// argument vector. Of a tool that is not known as a shell only what is called a command counts, unless the operator has named the tools.
func commands(config any, c *mortise.ToolCall) []string {
	names := mortise.StringsOr(config, "arguments", []string{"command", "cmd", "script", "input", "commands", "code", "chars"})
	m, object := c.Arguments.(map[string]any)
	switch {
	case shell(config, c) && !object:
		return append(text(c.Arguments), literals(c.Arguments)...)
	case shell(config, c):
	case !object || len(mortise.StringsOr(config, "tools", nil)) > 0:
		return nil
	default:
		names = []string{"command", "cmd", "script", "commands"}
	}
	out := named(m, names)
	for _, key := range []string{"input", "action"} { // of a tool of an MCP server, as hooks show its call, and of Codex's local_shell
		for _, v := range values(m, key) {
			if inner, ok := v.(map[string]any); ok {
				out = append(out, named(inner, names)...)
			}
		}
	}
	return out
}

// values are the arguments of a name in any case: a tool written in Go may take each of them for it.
func values(m map[string]any, name string) (out []any) {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if strings.EqualFold(key, name) {
			out = append(out, m[key])
		}
	}
	return out
}

// named are the texts of the arguments with one of the names. A list of args is behind the program that it is for.
func named(m map[string]any, names []string) (out []string) {
	lists := values(m, "args")
	for _, name := range names {
		for _, v := range values(m, name) {
			out = append(out, text(v)...)
			program, ok := v.(string)
			for _, list := range lists {
				if args, _ := list.([]any); ok && len(args) > 0 {
					out = append(out, text(append([]any{program}, args...))[0])
				}
			}
		}
	}
	return out
}

// literals are the strings of a program that calls tools, as Codex has its newer models write one:
// tools.exec_command({cmd: "make test"}). A command that the program composes is not seen.
func literals(v any) (out []string) {
	s, _ := v.(string)
	if !strings.Contains(s, "tools.") && !strings.Contains(s, "tools[") {
		return nil
	}
	for i := 0; i < len(s); i++ {
		q := s[i]
		if q != '"' && q != '\'' && q != '`' {
			continue
		}
		var b strings.Builder
		for i++; i < len(s) && s[i] != q; i++ {
			if s[i] == '\\' && i+1 < len(s) {
				i++
				if s[i] == 'n' {
					b.WriteByte('\n')
					continue
				}
			}
			b.WriteByte(s[i])
		}
		out = append(out, b.String())
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

package install

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/hook"
)

// Scope is for whom hooks are registered.
type Scope string

// Scopes.
const (
	ScopeUser    Scope = "user"
	ScopeProject Scope = "project"
)

// layout is how an agent's file holds hooks.
type layout string

const (
	grouped layout = "grouped" // {"hooks": {EVENT: [{"hooks": [{"type", "command", "timeout"}]}]}}
	flat    layout = "flat"    // {"hooks": {EVENT: [{"command", "timeout"}]}}
	copilot layout = "copilot" // {"version": 1, "hooks": {EVENT: [{"type", "bash", "timeoutSec"}]}}
	script  layout = "script"  // an extension of ours
)

// Agent is where an agent reads its hooks.
type Agent struct {
	Dialect *hook.Dialect
	// user and project are files, dir the variable that moves the user's folder home.
	user, project string
	home, dir     string
	layout        layout
	comments      bool
	// own is a file with nothing but our hooks. companion goes next to it.
	own       bool
	companion map[string]string
	// Command is the agent's program.
	Command string
}

func agents() map[string]Agent {
	return map[string]Agent{
		"claude": {user: "settings.json", project: ".claude/settings.json", home: ".claude", dir: "CLAUDE_CONFIG_DIR", layout: grouped, Command: "claude"},
		"codex":  {user: "hooks.json", project: ".codex/hooks.json", home: ".codex", dir: "CODEX_HOME", layout: grouped, Command: "codex"},
		"gemini": {user: "settings.json", project: ".gemini/settings.json", home: ".gemini", layout: grouped, comments: true, Command: "gemini"},
		"qwen":   {user: "settings.json", project: ".qwen/settings.json", home: ".qwen", layout: grouped, comments: true, Command: "qwen"},
		"copilot": {
			user: "hooks/mortise.json", project: ".github/hooks/mortise.json", home: ".copilot", dir: "COPILOT_HOME", layout: copilot, own: true, Command: "copilot",
		},
		"goose": {
			user: "plugins/mortise/hooks/hooks.json", project: ".agents/plugins/mortise/hooks/hooks.json", home: ".agents", layout: grouped, own: true,
			companion: map[string]string{"../plugin.json": "{\n  \"name\": \"mortise\",\n  \"version\": \"1.0.0\",\n  \"description\": \"Mortise plugins as hooks\"\n}\n"},
			Command:   "goose",
		},
		"crush":    {user: "crush/crush.json", project: "crush.json", home: ".config", dir: "XDG_CONFIG_HOME", layout: flat, Command: "crush"},
		"pi":       {user: "agent/extensions/mortise.ts", project: ".pi/extensions/mortise.ts", home: ".pi", layout: script, own: true, Command: "pi"},
		"opencode": {user: "opencode/plugin/mortise.js", project: ".opencode/plugin/mortise.js", home: ".config", dir: "XDG_CONFIG_HOME", layout: script, own: true, Command: "opencode"},
	}
}

// AgentOf returns an agent by the name of its dialect.
func AgentOf(name string) (*Agent, error) {
	a, ok := agents()[name]
	if !ok {
		return nil, fmt.Errorf("install: there is no agent %.40q; there are: %s", name, strings.Join(hook.Dialects(), ", "))
	}
	var err error
	a.Dialect, err = hook.DialectOf(name)
	return &a, err
}

// File is the agent's file of a scope. Getenv reads the environment; home is the user's folder, project that of the project.
func (a *Agent) File(scope Scope, getenv func(string) string, home, project string) string {
	if scope == ScopeProject {
		return filepath.Join(project, filepath.FromSlash(a.project))
	}
	dir := ""
	if a.dir != "" {
		dir = getenv(a.dir)
	}
	return filepath.Join(cmp.Or(dir, filepath.Join(home, a.home)), filepath.FromSlash(a.user))
}

// Line is the command of a hook.
type Line struct {
	// Client is the path of mortise-hook, Profile the folder of the profile.
	Client, Profile string
	Dialect, Event  string
	// Closed means that the agent must not continue without an answer; Gate that exit code 2 denies it.
	Closed, Gate bool
	// Without is what is printed of a result when there is no client, empty where that has no form.
	Without string
}

// String is the line, for /bin/sh. Where it fails closed, a gate denies when the client is missing or dies, and a result is withheld.
func (l *Line) String() string {
	s := quote(l.Client) + " " + quote(l.Profile) + " " + l.Dialect + " " + quote(l.Event)
	switch {
	case l.Closed && l.Gate:
		s += " closed || { echo " + quote(missing(l.Client, l.Dialect, "the call is denied")) + " >&2; exit 2; }"
	case l.Closed && l.Without != "":
		s += " closed || printf %s " + quote(l.Without)
	}
	return s
}

func missing(client, dialect, so string) string {
	return "mortise: the hook client " + client + " did not answer, so " + so + "; run: mortise hook doctor " + dialect
}

func quote(s string) string {
	if s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-", r)
	}) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// unquote is the text of a word.
func unquote(s string) string {
	if text, ok := strings.CutPrefix(s, "'"); ok {
		return strings.ReplaceAll(strings.TrimSuffix(text, "'"), `'\''`, "'")
	}
	return s
}

// word is what quote makes of a text: a shell takes it as one word, whatever is in it.
const word = `(?:[A-Za-z0-9_./-]+|'[^']*'(?:\\''[^']*')*)`

// Mark matches the lines of a profile for an agent, and no line that does anything else. The client may be that of another
// installation, as after an upgrade; it is the first submatch, and the profile the second one.
func Mark(profile, dialect string) *regexp.Regexp {
	return mark(regexp.QuoteMeta(quote(profile)), dialect)
}

func mark(profile, dialect string) *regexp.Regexp {
	return regexp.MustCompile(`^(` + word + `) (` + profile + `) ` + regexp.QuoteMeta(dialect) + ` ` + word + `(?: closed \|\| (?:\{ echo ` + word + ` >&2; exit 2; \}|printf %s ` + word + `))?$`)
}

// Entry is one hook to register.
type Entry struct {
	Event   string
	Line    string
	Timeout int // seconds
}

// Entries are the hooks of events, sorted by name.
func Entries(d *hook.Dialect, client, profile string, events []string, closed func(*hook.EventSpec) bool) []Entry {
	slices.Sort(events)
	var out []Entry
	for _, name := range events {
		spec := d.Events[name]
		l := Line{Client: client, Profile: profile, Dialect: d.Name, Event: name, Closed: closed(spec), Gate: spec.Gate}
		if spec.Kind == hook.EventPost {
			if out, ok := d.PolicyOutput(spec, true, missing(client, d.Name, "the result is withheld")); ok {
				l.Without = out
			}
		}
		out = append(out, Entry{Event: name, Line: l.String(), Timeout: spec.Timeout})
	}
	return out
}

// value is an entry in the agent's layout.
func (a *Agent) value(e Entry) any {
	timeout := e.Timeout
	if a.Dialect.TimeoutUnit == "ms" {
		timeout *= 1000
	}
	type command struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
	}
	switch a.layout {
	case flat:
		return struct {
			Command string `json:"command"`
			Timeout int    `json:"timeout"`
		}{e.Line, timeout}
	case copilot:
		return struct {
			Type    string `json:"type"`
			Bash    string `json:"bash"`
			Timeout int    `json:"timeoutSec"`
		}{"command", e.Line, timeout}
	default:
		if a.Dialect.Name == "goose" {
			type strict struct {
				command

				OnFailure string `json:"on_failure,omitempty"`
			}
			h := strict{command: command{"command", e.Line, timeout}}
			if strings.Contains(e.Line, " closed ") {
				h.OnFailure = "block"
			}
			return struct {
				Hooks []strict `json:"hooks"`
			}{[]strict{h}}
		}
		return struct {
			Hooks []command `json:"hooks"`
		}{[]command{{"command", e.Line, timeout}}}
	}
}

package rules

import (
	"strings"

	"github.com/mortise-dev/mortise/examples/plugins/guard/shell"
)

// Names of the rules.
const (
	RuleDelete    = "recursive_delete"
	RuleDisk      = "disk_write"
	RuleForkBomb  = "fork_bomb"
	RulePerms     = "recursive_permissions"
	RulePipeShell = "remote_script"
	RuleForcePush = "force_push"
	RuleReset     = "hard_reset"
	RulePower     = "power"
	RuleKillAll   = "kill_all"
	RuleExfil     = "exfiltration"
	RulePublish   = "publish"
	RuleFirewall  = "firewall"
	RuleTooLong   = "unreadable"
	RuleCustom    = "custom"
)

// Rules returns the names of all rules.
func Rules() []string {
	return []string{
		RuleDelete, RuleDisk, RuleForkBomb, RulePerms, RulePipeShell, RuleForcePush, RuleReset, RulePower,
		RuleKillAll, RuleExfil, RulePublish, RuleFirewall, RuleTooLong, RuleCustom,
	}
}

// Custom is a rule of the operator: a program, flags that must all be there, and
// prefixes of which one argument must have one.
type Custom struct {
	Name, Command  string
	Flags, Prefixs []string
}

// Config is what an operator may set.
type Config struct {
	// Allow lists commands that are never judged, word for word.
	Allow []string
	// Disable and Enable switch rules off and on. hard_reset is off by default.
	Disable, Enable []string
	// Branches are protected against a forced push; main, master by default.
	Branches []string
	Custom   []Custom
}

// Finding is why a script is refused.
type Finding struct {
	// Rule names the rule, Part is the offending command, cut to 200 bytes.
	Rule, Part string
}

// Judge applies the rules.
type Judge struct {
	allow    map[string]bool
	off      map[string]bool
	branches map[string]bool
	custom   []Custom
}

const (
	maxNesting = 6
	maxPart    = 200
)

// New takes a config.
func New(c Config) *Judge {
	j := &Judge{allow: map[string]bool{}, off: map[string]bool{RuleReset: true}, branches: map[string]bool{}, custom: c.Custom}
	for _, a := range c.Allow {
		j.allow[strings.TrimSpace(a)] = true
	}
	for _, e := range c.Enable {
		delete(j.off, e)
	}
	for _, d := range c.Disable {
		j.off[d] = true
	}
	if len(c.Branches) == 0 {
		c.Branches = []string{"main", "master"}
	}
	for _, b := range c.Branches {
		j.branches[b] = true
	}
	return j
}

// Script judges a text and returns the first finding, or nil.
func (j *Judge) Script(text string) *Finding {
	if j.allow[strings.TrimSpace(text)] {
		return nil
	}
	return j.script(text, 0)
}

func (j *Judge) script(text string, nesting int) *Finding {
	s := shell.Parse(text)
	if (s.Truncated || nesting > maxNesting) && !j.off[RuleTooLong] {
		return &Finding{Rule: RuleTooLong, Part: "the script is too long or too deeply nested to check"}
	}
	for i := range s.Commands {
		c := &s.Commands[i]
		if f := j.command(s, c, nesting); f != nil && !j.off[f.Rule] {
			if f.Part == "" {
				f.Part = part(c)
			}
			if !j.allow[f.Part] {
				return f
			}
		}
	}
	if bomb(s) && !j.off[RuleForkBomb] {
		return &Finding{Rule: RuleForkBomb, Part: "a function that pipes into itself in the background"}
	}
	return nil
}

// part renders a command for a reason.
func part(c *shell.Command) string {
	s := strings.Join(c.Words, " ")
	for _, r := range c.Redirects {
		s += " " + r.Op + " " + r.Target
	}
	s = strings.ToValidUTF8(strings.TrimSpace(s), "?")
	if len(s) > maxPart {
		s = strings.ToValidUTF8(s[:maxPart], "") + "..."
	}
	return s
}

// command judges one command and what it runs in turn.
func (j *Judge) command(s *shell.Script, c *shell.Command, nesting int) *Finding {
	for _, r := range c.Redirects {
		if strings.HasPrefix(r.Op, ">") && device(r.Target) {
			return &Finding{Rule: RuleDisk}
		}
	}
	w := unwrap(c.Words)
	if len(w) == 0 {
		return nil
	}
	name := base(w[0])
	if interpreter(name) || name == "eval" {
		if f := j.interpreted(s, c, name, w[1:], nesting); f != nil {
			return f
		}
	}
	if name == "xargs" || name == "find" || name == "parallel" {
		if f := j.indirect(s, c, name, w[1:], nesting); f != nil {
			return f
		}
	}
	if f := builtin(name, w[1:]); f != "" {
		return &Finding{Rule: f}
	}
	if name == "git" {
		if f := j.git(w[1:]); f != "" {
			return &Finding{Rule: f}
		}
	}
	if network(name) && j.leaks(s, c, w) {
		return &Finding{Rule: RuleExfil}
	}
	return j.customs(name, w[1:])
}

// interpreted judges sh -c "..", bash <(..), .. | sh and here documents.
func (j *Judge) interpreted(s *shell.Script, c *shell.Command, name string, args []string, nesting int) *Finding {
	if name == "eval" {
		return j.script(strings.Join(args, " "), nesting+1)
	}
	for i, a := range args {
		if strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "--") && strings.Contains(a, "c") && i+1 < len(args) {
			if f := j.script(args[i+1], nesting+1); f != nil {
				return f
			}
			break
		}
	}
	for _, d := range c.Heredocs {
		if f := j.script(d, nesting+1); f != nil {
			return f
		}
	}
	for _, r := range c.Redirects {
		if r.Op == "<<<" {
			if f := j.script(r.Target, nesting+1); f != nil {
				return f
			}
		}
	}
	if fetched(s, c) {
		return &Finding{Rule: RulePipeShell, Part: "a downloaded script is handed to " + name}
	}
	if c.Stage > 0 {
		// echo "rm -rf /" | sh
		for i := range s.Commands {
			o := &s.Commands[i]
			if o.Pipe == c.Pipe && o.Stage < c.Stage && len(o.Words) > 1 && (o.Words[0] == "echo" || o.Words[0] == "printf") {
				if f := j.script(strings.Join(o.Words[1:], " "), nesting+1); f != nil {
					return f
				}
			}
		}
	}
	return nil
}

// fetched reports an interpreter whose input or substitutions download.
func fetched(s *shell.Script, c *shell.Command) bool {
	own := false
	for i := range s.Commands {
		o := &s.Commands[i]
		w := unwrap(o.Words)
		if o.Pipe == c.Pipe && o.Stage < c.Stage {
			own = true
		}
		if len(w) == 0 || !downloader(base(w[0])) {
			continue
		}
		if o.Pipe == c.Pipe && o.Stage < c.Stage {
			return true
		}
		for _, p := range c.Procs {
			if o.Pipe >= p[0] && o.Pipe < p[1] {
				return true
			}
		}
		// (curl ..) | sh: the subshell's pipeline has another number.
		if c.Stage > 0 && !own && o.Pipe == c.Pipe-1 {
			return true
		}
	}
	return false
}

// indirect judges what xargs, parallel and find run.
func (j *Judge) indirect(s *shell.Script, c *shell.Command, name string, args []string, nesting int) *Finding {
	if name == "find" {
		return j.find(args, nesting)
	}
	for i, a := range args {
		if strings.HasPrefix(a, "-") || i > 0 && strings.HasPrefix(args[i-1], "-") && len(args[i-1]) == 2 && strings.Contains("InPLdsE", args[i-1][1:]) {
			continue
		}
		run := args[i:]
		// The names come from the pipe: take the words of an echo as arguments.
		for k := range s.Commands {
			o := &s.Commands[k]
			if o.Pipe == c.Pipe && o.Stage == c.Stage-1 && len(o.Words) > 1 && (o.Words[0] == "echo" || o.Words[0] == "printf" || o.Words[0] == "ls" || o.Words[0] == "find") {
				run = append(append([]string{}, run...), o.Words[1:]...)
			}
		}
		return j.words(run, nesting)
	}
	return nil
}

func (j *Judge) find(args []string, nesting int) *Finding {
	bad := false
	for i, a := range args {
		if i == 0 || !strings.HasPrefix(args[0], "-") {
			if strings.HasPrefix(a, "-") || a == "(" || a == "!" {
				break
			}
			bad = bad || protected(a)
		}
	}
	narrowed := false
	for i, a := range args {
		switch a {
		case "-name", "-iname", "-path", "-regex", "-newer", "-mtime", "-mmin", "-empty", "-user":
			narrowed = true
		case "-delete":
			if bad && !narrowed {
				return &Finding{Rule: RuleDelete}
			}
		case "-exec", "-execdir", "-ok":
			if bad && !narrowed && i+1 < len(args) && base(args[i+1]) == "rm" {
				return &Finding{Rule: RuleDelete}
			}
			return j.words(args[i+1:], nesting)
		}
	}
	return nil
}

// words judges a command that another one runs.
func (j *Judge) words(w []string, nesting int) *Finding {
	if len(w) == 0 || nesting > maxNesting {
		return nil
	}
	c := shell.Command{Words: w}
	return j.command(&shell.Script{Commands: []shell.Command{c}}, &c, nesting+1)
}

func (j *Judge) customs(name string, args []string) *Finding {
	for _, r := range j.custom {
		if r.Command != name || !hasAll(args, r.Flags) {
			continue
		}
		for _, a := range args {
			for _, p := range r.Prefixs {
				if strings.HasPrefix(a, p) {
					return &Finding{Rule: RuleCustom, Part: ""}
				}
			}
		}
		if len(r.Prefixs) == 0 {
			return &Finding{Rule: RuleCustom}
		}
	}
	return nil
}

func hasAll(args, want []string) bool {
	for _, w := range want {
		found := false
		for _, a := range args {
			found = found || a == w
		}
		if !found {
			return false
		}
	}
	return true
}

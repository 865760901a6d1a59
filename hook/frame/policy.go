package frame

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Names in the folder of a profile.
const (
	PolicyFile = "policy"
	LockFile   = "daemon.lock"
	StartFile  = "start.lock"
	LogFile    = "daemon.log"
)

const policyHead = "mortise-hook policy 1"

// Policy is what a client has to know: how to start the daemon, and what to answer without it.
type Policy struct {
	// Daemon is the command that starts it, Env the variables of the client's environment that it may have.
	Daemon, Env []string
	Rules       []Rule

	// raw are rules that were not decoded yet: a client needs one of many.
	raw []string
}

// Rule is the answer to an event when there is no daemon.
type Rule struct {
	Dialect, Event string
	// Closed means that the agent must not continue.
	Closed bool
	Stdout string
}

// Rule returns the rule of an event, and false if there is none.
func (p *Policy) Rule(dialect, event string) (Rule, bool) {
	for _, r := range p.Rules {
		if r.Dialect == dialect && r.Event == event {
			return r, true
		}
	}
	prefix := "\"rule\"\t" + strconv.Quote(dialect) + "\t" + strconv.Quote(event) + "\t"
	for _, l := range p.raw {
		if !strings.HasPrefix(l, prefix) {
			continue
		}
		if f, err := fieldsOf(l); err == nil && len(f) == 5 {
			return Rule{Dialect: f[1], Event: f[2], Closed: f[3] == "closed", Stdout: f[4]}, true
		}
	}
	return Rule{}, false
}

// Marshal encodes the policy, one fact a line.
func (p *Policy) Marshal() []byte {
	var b strings.Builder
	line := func(fields ...string) {
		for i, f := range fields {
			if i > 0 {
				b.WriteByte('\t')
			}
			b.WriteString(strconv.Quote(f))
		}
		b.WriteByte('\n')
	}
	b.WriteString(policyHead + "\n")
	line(append([]string{"daemon"}, p.Daemon...)...)
	line(append([]string{"env"}, p.Env...)...)
	rules := slices.Clone(p.Rules)
	slices.SortFunc(rules, func(a, b Rule) int {
		if c := strings.Compare(a.Dialect, b.Dialect); c != 0 {
			return c
		}
		return strings.Compare(a.Event, b.Event)
	})
	for _, r := range rules {
		state := "open"
		if r.Closed {
			state = "closed"
		}
		line("rule", r.Dialect, r.Event, state, r.Stdout)
	}
	for _, l := range p.raw {
		b.WriteString(l + "\n")
	}
	return []byte(b.String())
}

// ParsePolicy decodes a policy. Lines that a later version added are ignored.
func ParsePolicy(data []byte) (*Policy, error) {
	lines := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if lines[0] != policyHead {
		return nil, errors.New("frame: the policy file is not understood")
	}
	p := &Policy{}
	for _, l := range lines[1:] {
		if strings.HasPrefix(l, "\"rule\"") {
			p.raw = append(p.raw, l)
			continue
		}
		fields, err := fieldsOf(l)
		if err != nil {
			return nil, err
		}
		switch fields[0] {
		case "daemon":
			p.Daemon = fields[1:]
		case "env":
			p.Env = fields[1:]
		}
	}
	return p, nil
}

func fieldsOf(line string) ([]string, error) {
	fields := strings.Split(line, "\t")
	for i := range fields {
		s, err := strconv.Unquote(fields[i])
		if err != nil {
			return nil, errors.New("frame: the policy file is damaged")
		}
		fields[i] = s
	}
	return fields, nil
}

// ReadPolicy reads the policy of a profile's folder, which must be the user's own.
func ReadPolicy(dir string) (*Policy, error) {
	if err := CheckFolder(dir); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, PolicyFile))
	if err != nil {
		return nil, err
	}
	return ParsePolicy(data)
}

package frame

import (
	"errors"
	"os"
	"path/filepath"
	"sort"
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

// Policy is what a client has to know: where the daemon is, how to start it, and what to answer without it.
type Policy struct {
	// Socket of the daemon.
	Socket string
	// Daemon is the command that starts it, Env the variables of the client's environment that it may have.
	Daemon, Env []string
	Rules       []Rule
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
	line("socket", p.Socket)
	line(append([]string{"daemon"}, p.Daemon...)...)
	line(append([]string{"env"}, p.Env...)...)
	rules := append([]Rule(nil), p.Rules...)
	sort.Slice(rules, func(i, j int) bool {
		a, b := rules[i], rules[j]
		return a.Dialect < b.Dialect || a.Dialect == b.Dialect && a.Event < b.Event
	})
	for _, r := range rules {
		state := "open"
		if r.Closed {
			state = "closed"
		}
		line("rule", r.Dialect, r.Event, state, r.Stdout)
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
		fields := strings.Split(l, "\t")
		for i := range fields {
			s, err := strconv.Unquote(fields[i])
			if err != nil {
				return nil, errors.New("frame: the policy file is damaged")
			}
			fields[i] = s
		}
		switch {
		case fields[0] == "socket" && len(fields) == 2:
			p.Socket = fields[1]
		case fields[0] == "daemon":
			p.Daemon = fields[1:]
		case fields[0] == "env":
			p.Env = fields[1:]
		case fields[0] == "rule" && len(fields) == 5:
			p.Rules = append(p.Rules, Rule{Dialect: fields[1], Event: fields[2], Closed: fields[3] == "closed", Stdout: fields[4]})
		}
	}
	return p, nil
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

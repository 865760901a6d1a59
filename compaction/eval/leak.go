package eval

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// Leak is a probe whose fact the recording gives away.
type Leak struct {
	Probe Probe
	// Message is the index of the message that gives it away.
	Message int
}

// Withdraw takes out of a set the probes that leak, and returns them. Some
// recordings end with the outcome of the run, as a message that no agent answers
// and no agent saw, such as the patch that is graded. Where it holds every fact that
// the probes of its conversation ask for, it is what the probes were made of: a text
// that keeps nothing but the end has them all.
func Withdraw(s *Set) []Leak {
	var out []Leak
	leaked := make(map[string]int)
	for i := range s.Conversations {
		c := &s.Conversations[i]
		if at, ok := outcome(c.Messages); ok && statesAll(s.Probes, c.ID, flat(&c.Messages[at])) {
			leaked[c.ID] = at
		}
	}
	kept := s.Probes[:0:0]
	for _, p := range s.Probes {
		if at, ok := leaked[p.Conversation]; ok {
			out = append(out, Leak{Probe: p, Message: at})
			continue
		}
		kept = append(kept, p)
	}
	s.Probes = kept
	return out
}

// outcome finds a message that stands behind the last answer of an agent. It may be the
// output of the command that hands the work in.
func outcome(messages []abi.Message) (int, bool) {
	last := len(messages) - 1
	if last < 1 || messages[last].Role != abi.RoleUser && messages[last].Role != abi.RoleTool {
		return 0, false
	}
	for i := range messages[:last] {
		if messages[i].Role == abi.RoleAssistant {
			return last, true
		}
	}
	return 0, false
}

// statesAll reports that a text holds all facts of a conversation's probes.
func statesAll(probes []Probe, conversation, text string) bool {
	text = fold(text)
	n := 0
	for i := range probes {
		if probes[i].Conversation != conversation {
			continue
		}
		n++
		for _, needle := range probes[i].needles() {
			if len(places(text, fold(strings.TrimSpace(needle)), 1)) == 0 {
				return false
			}
		}
	}
	return n > 0
}

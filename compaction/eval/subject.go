package eval

import (
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// prepared is a set with what is found out once.
type prepared struct {
	set      *Set
	subjects []*subject
	// unstated probes are about strings that their conversation does not hold.
	unstated int
}

// subject is a conversation that probes name.
type subject struct {
	id       string
	messages []abi.Message
	facts    []fact
	bytes    int
	tokens   int64
	said     runs
	modified []string
}

func prepare(s *Set) *prepared {
	l := newLexicon()
	out := &prepared{set: s}
	for i := range s.Conversations {
		talk := &s.Conversations[i]
		sub := &subject{id: talk.ID, messages: body(talk.Messages)}
		text := Flatten(sub.messages)
		whole := newDocument(text)
		for j := range s.Probes {
			if s.Probes[j].Conversation != sub.id {
				continue
			}
			if f := newFact(&s.Probes[j], whole, l); len(f.needles) > 0 {
				sub.facts = append(sub.facts, f)
			} else {
				out.unstated++
			}
		}
		if len(sub.facts) == 0 {
			continue
		}
		sub.bytes, sub.tokens, sub.said = len(text), compaction.Estimate(sub.messages), runsOf(text)
		_, sub.modified = compaction.FileOperations(sub.messages)
		out.subjects = append(out.subjects, sub)
	}
	return out
}

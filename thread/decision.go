package thread

import (
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/phases"
)

// RecordSchema names the format of a decision record.
const RecordSchema = "mortise.record.v1"

// RunStart is the beginning of a run, or of the time after it waited.
type RunStart struct {
	Schema string          `json:"schema"`
	At     time.Time       `json:"at"`
	Run    abi.RunIdentity `json:"run"`
	// Source is what was run, as the path of a recording.
	Source string `json:"source,omitempty"`
}

// RunEnd is the end of a run, or of the time before it waits.
type RunEnd struct {
	At     time.Time `json:"at"`
	Type   string    `json:"type"`
	Code   string    `json:"code,omitempty"`
	Detail string    `json:"detail,omitempty"`
	Steps  int       `json:"steps"`
	// Dropped decisions had no room in the record, or could not be written.
	Dropped int `json:"dropped,omitempty"`
}

// Verdict is in a word what became of a hook's reply.
type Verdict string

// Verdicts.
const (
	// NoOpinion is an empty reply.
	NoOpinion Verdict = "no_opinion"
	// Applied is a reply that was applied as a whole. Of a gate: its decision counts.
	Applied Verdict = "applied"
	// Overridden is a reply of which all or a part lost to another hook's.
	Overridden Verdict = "overridden"
	// Refused is a reply that was dropped as a whole, for the reasons given.
	Refused Verdict = "refused"
	// Deferred is a reply that was dropped; the hook was called again on the state that the others had made.
	Deferred Verdict = "deferred"
	// Failed is a call without a reply.
	Failed Verdict = "failed"
	// Skipped is a hook in quarantine, which was not called.
	Skipped Verdict = "skipped"
)

// Decision is what one call of a hook came to, what was decided about a compaction, or what a person decided.
type Decision struct {
	At    time.Time `json:"at"`
	Phase abi.Phase `json:"phase,omitempty"`
	Step  int       `json:"step"`
	// Plugin replied, by Handler if it is one of its actions or effects.
	Plugin  string `json:"plugin,omitempty"`
	Handler string `json:"handler,omitempty"`
	// CallID and Tool are those of the tool call that it was about.
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	// RewrittenBy are the plugins that had changed its arguments by then. Recheck is a gate
	// that judged it again because of that.
	RewrittenBy []string `json:"rewritten_by,omitempty"`
	Recheck     bool     `json:"recheck,omitempty"`
	Verdict     Verdict  `json:"verdict,omitempty"`
	Attempt     int      `json:"attempt"`
	DurationMS  float64  `json:"duration_ms"`
	Saw         *Saw     `json:"saw,omitempty"`

	Applied     []Change  `json:"applied,omitempty"`
	Refused     []Refusal `json:"refused,omitempty"`
	Gate        *Gate     `json:"gate,omitempty"`
	DeferredBy  string    `json:"deferred_by,omitempty"`
	Error       string    `json:"error,omitempty"`
	Quarantined bool      `json:"quarantined,omitempty"`

	// Compaction is set instead of the others: what was decided about the thread's compaction during the run.
	Compaction *compaction.Event `json:"compaction,omitempty"`
	// Answer is set with Tool and CallID instead of the others: what was decided about a call that waited. At is when.
	Answer *Answer `json:"answer,omitempty"`
}

// Answer is what a person, or a program for one, decided about a call that waited. The texts of results are not in the record.
type Answer struct {
	Ticket string `json:"ticket"`
	// Choice is allow, deny or result.
	Choice string `json:"choice"`
	Reason string `json:"reason,omitempty"`
	// By is who decided, as the name of a token; empty when it is not known.
	By string `json:"by,omitempty"`
}

// Saw is how much of the conversation the hook received.
type Saw struct {
	// Messages of the Total in the conversation, beginning with index From.
	Messages int `json:"messages"`
	From     int `json:"from,omitempty"`
	Total    int `json:"total"`
	// Revision of the state.
	Revision uint64 `json:"revision"`
}

// Change is one thing that was applied.
type Change struct {
	What       string `json:"what"`
	Target     string `json:"target,omitempty"`
	Note       string `json:"note,omitempty"`
	Overridden bool   `json:"overridden,omitempty"`
}

// Refusal is one part of a reply that was refused.
type Refusal struct {
	What   string `json:"what"`
	Reason string `json:"reason"`
}

// Gate is a decision about a tool call. The texts of tickets and results are not in the record.
type Gate struct {
	Action     abi.GateAction `json:"action"`
	Reason     string         `json:"reason,omitempty"`
	Ticket     string         `json:"ticket,omitempty"`
	Overridden bool           `json:"overridden,omitempty"`
}

// DecisionOf returns the decision of what the phase runtime recorded of one call.
func DecisionOf(r *phases.Record) Decision {
	e := Decision{
		At: r.At, Phase: r.Phase, Step: r.Step, Plugin: r.Plugin, Handler: r.Handler, CallID: r.CallID, Tool: r.ToolName,
		Attempt: r.Attempt, DurationMS: float64(r.Duration) / float64(time.Millisecond),
		DeferredBy: r.Deferred, Error: r.Err, Quarantined: r.Quarantined, RewrittenBy: r.RewrittenBy, Recheck: r.Recheck,
	}
	if r.Attempt > 0 {
		e.Saw = &Saw{Messages: r.MessagesSent, From: r.MessagesFrom, Total: r.MessagesTotal, Revision: r.Revision}
	}
	for _, c := range r.Applied {
		e.Applied = append(e.Applied, Change(c))
	}
	for _, c := range r.Refused {
		e.Refused = append(e.Refused, Refusal(c))
	}
	if g := r.Gate; g != nil {
		e.Gate = &Gate{Action: g.Action, Reason: g.Reason, Overridden: r.Overridden}
		if g.Ticket != nil {
			e.Gate.Ticket = g.Ticket.ID
		}
	}
	e.Verdict = verdict(&e)
	return e
}

func verdict(e *Decision) Verdict {
	switch {
	case e.Attempt == 0 && e.Error == "":
		return Skipped
	case e.DeferredBy != "":
		return Deferred
	case len(e.Refused) > 0:
		return Refused
	case e.Error != "":
		return Failed
	case overridden(e):
		return Overridden
	case e.Gate == nil && len(e.Applied) == 0:
		return NoOpinion
	default:
		return Applied
	}
}

func overridden(e *Decision) bool {
	if e.Gate != nil && e.Gate.Overridden {
		return true
	}
	for _, c := range e.Applied {
		if c.Overridden {
			return true
		}
	}
	return false
}

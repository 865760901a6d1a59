package openai

import (
	"cmp"
	"crypto/rand"
	"encoding/json"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// answer turns what a provider sends into deltas. Deltas of calls come one call after the
// other, though servers may mix them: the first call that is not over is emitted live, and
// later ones wait for its end.
type answer struct {
	emit    func(llm.Delta) bool
	names   map[string]string
	calls   []*call
	emitted int // calls that are over
	ids     map[string]bool
	refusal string
	usage   *abi.Usage
	model   string
	// reason is why the model stopped, by the provider's word.
	reason string
	// over means that the model stopped, final that nothing of use follows.
	over, final bool
	// gone means that the receiver wants no more.
	gone bool
}

// call is one that is under way. Of its arguments, the first sent bytes are emitted.
type call struct {
	id, name      string
	arguments     []byte
	sent          int
	started, done bool
	// extra is a signature that follows the call.
	extra string
}

func newAnswer(tools []abi.Tool, emit func(llm.Delta) bool) *answer {
	return &answer{emit: emit, names: ownNames(tools), ids: make(map[string]bool)}
}

func (a *answer) delta(d llm.Delta) {
	a.gone = a.gone || !a.emit(d)
}

func (a *answer) text(s string) {
	if s != "" {
		a.delta(llm.Delta{Type: llm.DeltaText, Text: s})
	}
}

func (a *answer) reasoning(s string) {
	if s != "" {
		a.delta(llm.Delta{Type: llm.DeltaReasoning, Text: s})
	}
}

// begin begins a call. Some servers give no id, or the same one to several.
func (a *answer) begin(id, name string) *call {
	if id == "" || a.ids[id] {
		id = "call_" + rand.Text()
	}
	a.ids[id] = true
	c := &call{id: id, name: name}
	a.calls = append(a.calls, c)
	if live := a.calls[a.emitted]; live != c && complete(live.arguments) {
		live.done = true
	}
	a.advance()
	return c
}

// arguments adds to the JSON of a call.
func (a *answer) arguments(c *call, text string) {
	c.arguments = append(c.arguments, text...)
	a.advance()
}

// endCall ends a call.
func (a *answer) endCall(c *call) {
	c.done = true
	a.advance()
}

// advance emits what may be emitted of the calls.
func (a *answer) advance() {
	for a.emitted < len(a.calls) {
		c := a.calls[a.emitted]
		if c.name == "" && !c.done {
			return // It may follow.
		}
		if !c.started {
			c.started = true
			a.delta(llm.Delta{Type: llm.DeltaCallStart, CallID: c.id, Name: cmp.Or(a.names[c.name], c.name)})
		}
		if more := c.arguments[c.sent:]; len(more) > 0 {
			c.sent = len(c.arguments)
			a.delta(llm.Delta{Type: llm.DeltaCallArguments, CallID: c.id, Text: string(more)})
		}
		if !c.done {
			return
		}
		a.delta(llm.Delta{Type: llm.DeltaBlockStop})
		if c.extra != "" {
			a.delta(llm.Delta{Type: llm.DeltaSignature, Text: c.extra})
		}
		a.emitted++
	}
}

// bill emits what the answer cost, also one that failed.
func (a *answer) bill() {
	if a.usage != nil {
		a.delta(llm.Delta{Type: llm.DeltaUsage, Usage: a.usage})
	}
}

// finish ends the answer.
func (a *answer) finish(stop abi.StopReason) {
	for _, c := range a.calls {
		c.done = true
	}
	a.advance()
	if stop == abi.StopEndTurn && len(a.calls) > 0 {
		stop = abi.StopToolUse
	}
	a.delta(llm.Delta{Type: llm.DeltaStop, Stop: stop, Name: a.model})
}

// complete reports whether text is a whole JSON object.
func complete(text []byte) bool { return len(text) > 0 && text[0] == '{' && json.Valid(text) }

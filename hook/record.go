package hook

import (
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// Record is what became of one event. Except for Raw it holds no contents: hashes, names and decisions.
type Record struct {
	At      time.Time `json:"at"`
	Dialect string    `json:"dialect"`
	Event   string    `json:"event"`
	Session string    `json:"session,omitempty"`
	Lane    string    `json:"lane,omitempty"`
	Call    string    `json:"call,omitempty"`
	Tool    string    `json:"tool,omitempty"`
	Kind    Kind      `json:"kind,omitempty"`
	// Input is a hash of the call's input.
	Input string `json:"input,omitempty"`
	// Decision is none, deny, suspend, approve, rewrite, replace, continue, veto, stop or context; By the plugins.
	Decision string `json:"decision"`
	By       string `json:"by,omitempty"`
	Ticket   string `json:"ticket,omitempty"`
	// Unsupported are decisions that the dialect cannot express, Failed plugins that failed closed.
	Unsupported []string `json:"unsupported,omitempty"`
	Failed      []string `json:"failed,omitempty"`
	// Duplicate events were answered from the first one.
	Duplicate bool `json:"duplicate,omitempty"`
	// Returned are the tokens that were given back after a compaction, an estimate.
	Returned int `json:"returned,omitempty"`
	// Compacted means that the agent has compacted; Repair is what its calls used of the names of before.
	Compacted bool         `json:"compacted,omitempty"`
	Repair    *RepairUse   `json:"repair,omitempty"`
	Plugins   []PluginCall `json:"plugins,omitempty"`
	Error     string       `json:"error,omitempty"`
	MS        float64      `json:"ms"`

	// Raw is the event, which is kept only if the operator wants it.
	Raw []byte `json:"-"`

	notes map[string]string
}

// PluginCall is one call of a plugin at a phase.
type PluginCall struct {
	Plugin  string         `json:"plugin"`
	Phase   abi.Phase      `json:"phase"`
	Attempt int            `json:"attempt"`
	MS      float64        `json:"ms"`
	Applied []string       `json:"applied,omitempty"`
	Refused int            `json:"refused,omitempty"`
	Gate    abi.GateAction `json:"gate,omitempty"`
	Recheck bool           `json:"recheck,omitempty"`
	Failed  bool           `json:"failed,omitempty"`
}

// note is why a plugin did something, for the model.
func (r *Record) note(plugin string, effect abi.EffectType) string {
	return r.notes[plugin+" "+string(effect)]
}

// finish sums the record up.
func (r *Record) finish(e *Event, a *Answer, now time.Time) {
	r.MS = ms(now.Sub(r.At))
	if e.Call.native != nil {
		if b, err := encodeJSON(e.Call.native); err == nil {
			r.Input = digest(b)
		}
	}
	if r.Decision != "" {
		return
	}
	switch {
	case a.Deny != nil:
		r.Decision = "deny"
	case a.Suspend != nil:
		r.Decision = "suspend"
	case a.Stop != nil:
		r.Decision = "stop"
	case a.Rewrite != nil:
		r.Decision = "rewrite"
	case a.Approve:
		r.Decision = "approve"
	case a.Replace != nil:
		r.Decision = "replace"
	case a.Continue != nil:
		r.Decision = "continue"
	case a.Veto != nil:
		r.Decision = "veto"
	case len(a.Context) > 0 || a.Focus != "":
		r.Decision = "context"
	default:
		r.Decision = "none"
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Trace gathers what the calls of plugins came to, for the records of their events. It is safe for concurrent use.
type Trace struct {
	mu   sync.Mutex
	open map[string]*Record
}

// NewTrace makes a trace. Its Record belongs in the Config of the [phases.Runtime] of a [Program].
func NewTrace() *Trace { return &Trace{open: map[string]*Record{}} }

func (t *Trace) begin(lane string, r *Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.notes = map[string]string{}
	t.open[lane] = r
}

func (t *Trace) end(lane string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.open, lane)
}

// Record takes what one call came to.
func (t *Trace) Record(r phases.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	to := t.open[r.Run.ThreadID]
	if to == nil {
		return
	}
	c := PluginCall{
		Plugin: r.Plugin, Phase: r.Phase, Attempt: r.Attempt, MS: ms(r.Duration), Refused: len(r.Refused), Recheck: r.Recheck, Failed: r.Err != "",
	}
	for _, a := range r.Applied {
		c.Applied = append(c.Applied, a.What)
		if a.Note != "" {
			to.notes[r.Plugin+" "+a.What] = a.Note
		}
	}
	if r.Gate != nil {
		c.Gate = r.Gate.Action
	}
	to.Plugins = append(to.Plugins, c)
}

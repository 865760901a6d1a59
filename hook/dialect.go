package hook

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/abi"
)

//go:embed dialects/*.json
var tables embed.FS

// EventKind is what an agent's event is about, in every dialect.
type EventKind string

// Kinds of events.
const (
	EventPre       EventKind = "pre"       // a tool is about to run
	EventPost      EventKind = "post"      // a tool has run
	EventFailed    EventKind = "failed"    // a tool has failed, in a dialect that keeps failures apart
	EventBatch     EventKind = "batch"     // all tools of an answer have run
	EventPrompt    EventKind = "prompt"    // the user has written
	EventEnd       EventKind = "end"       // the agent has answered
	EventFailure   EventKind = "failure"   // the agent ends because of an error
	EventSession   EventKind = "session"   // a session starts, is resumed, or continues after a compaction
	EventClose     EventKind = "close"     // a session ends
	EventCompact   EventKind = "compact"   // a compaction is about to start
	EventCompacted EventKind = "compacted" // a compaction has ended
)

// Form is an answer that an event of a dialect may have.
type Form string

// Forms. Their shape is in the dialect's table.
const (
	FormDeny     Form = "deny"
	FormRewrite  Form = "rewrite"
	FormApprove  Form = "approve"
	FormDefer    Form = "defer"
	FormAsk      Form = "ask"
	FormContext  Form = "context"
	FormReplace  Form = "replace"
	FormStop     Form = "stop"
	FormContinue Form = "continue"
	FormVeto     Form = "veto"
	FormFocus    Form = "focus"
)

// Dialect is how one agent talks to its hooks.
type Dialect struct {
	Name string `json:"name"`
	// Agent is the name of the agent for people.
	Agent string `json:"agent"`
	// Noop is the standard output of no opinion.
	Noop string `json:"noop"`
	// Documents means that the table was written from documents and was not run against the agent yet.
	Documents bool `json:"documents"`
	// Shim means that the agent has no command hooks; an extension of ours sends the events.
	Shim bool `json:"shim"`
	// Internal dialects are those of programs of ours.
	Internal bool `json:"internal"`
	// Timeout of a hook in seconds, and the unit in which the agent's settings have it: s or ms.
	Timeout     int    `json:"timeout"`
	TimeoutUnit string `json:"timeout_unit"`
	// Oldest is the first version of the agent whose hooks replace every result that the table lets them replace.
	Oldest string `json:"oldest"`
	// ResultText means that results are replaced by one text, not in the tool's own shape.
	ResultText bool `json:"result_text"`
	// PathMark is what the agent takes off the beginning of a path; it takes spaces of Unicode in one for plain ones, too.
	PathMark string `json:"path_mark"`
	// Result is the shape of a result that is one text, where that is not the text itself.
	Result any `json:"result"`
	// Compaction is the order of events after a compaction: session_then_post or post_then_session.
	Compaction string                `json:"compaction"`
	Events     map[string]*EventSpec `json:"events"`
	Tools      map[string]Tool       `json:"tools"`

	EventField string            `json:"event_field"`
	Fields     map[string]string `json:"fields"`
	MCP        struct {
		Prefix    string `json:"prefix"`
		Separator string `json:"separator"`
		// Context is the field of an event that names server and tool of a call, where a name may be cut or ambiguous.
		Context string `json:"context"`
	} `json:"mcp"`
}

// EventSpec is one event of a dialect.
type EventSpec struct {
	Name   string      `json:"-"`
	Kind   EventKind   `json:"kind"`
	Phases []abi.Phase `json:"phases"`
	// Gate means that the agent must not continue without an answer when a plugin fails closed.
	Gate bool `json:"gate"`
	// Timeout of this event in seconds, the dialect's when 0.
	Timeout int          `json:"timeout"`
	Forms   map[Form]any `json:"forms"`
	// StopDenies means that a stop has an effect only together with a denial.
	StopDenies bool `json:"stop_denies"`
	// Merges means that a rewrite is laid over the call's input: keys cannot be removed.
	Merges bool `json:"merges"`
	// Since is the first version of the agent whose settings may have the event, empty for all.
	Since string `json:"since"`
	// VetoAutomatic means that the agent works on without a compaction that it wanted itself.
	VetoAutomatic bool `json:"veto_automatic"`
	// PlainFocus means that the focus is plain text on standard output.
	PlainFocus bool `json:"plain_focus"`
	// PromptRepeats means that the event also comes when the agent continues by itself.
	PromptRepeats bool `json:"prompt_repeats"`
}

// Tool is what a tool of an agent does, and how its arguments are called.
type Tool struct {
	Kind Kind `json:"kind"`
	// Args are the tool's names of arguments, by the names of the vocabulary.
	Args map[string]string `json:"args"`
	// Result names the fields of the result that hold what the tool printed or read, the first one is the main one.
	Result []string `json:"result"`
}

// all reads the tables once.
var all = sync.OnceValue(func() map[string]*Dialect { //nolint:gochecknoglobals // embedded tables, decoded at first use
	out := map[string]*Dialect{}
	files, err := tables.ReadDir("dialects")
	if err != nil {
		panic(err) // the tables are part of the program
	}
	for _, f := range files {
		data, err := tables.ReadFile("dialects/" + f.Name())
		if err != nil {
			panic(err)
		}
		d := &Dialect{}
		if err := json.Unmarshal(data, d); err != nil {
			panic(fmt.Sprintf("hook: %s: %v", f.Name(), err))
		}
		for name, e := range d.Events {
			e.Name, e.Timeout = name, cmp.Or(e.Timeout, d.Timeout)
		}
		out[d.Name] = d
	}
	return out
})

// Dialects returns the names of all dialects of agents, sorted.
func Dialects() []string {
	names := slices.Sorted(maps.Keys(all()))
	return slices.DeleteFunc(names, func(name string) bool { return all()[name].Internal })
}

// DialectOf returns a dialect by its name.
func DialectOf(name string) (*Dialect, error) {
	if d := all()[name]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("hook: there is no dialect %.40q; there are: %s", name, strings.Join(Dialects(), ", "))
}

// resultOf is a text as a result.
func (d *Dialect) resultOf(text string) any {
	if d.Result == nil {
		return text
	}
	return fill(d.Result, map[string]any{"$text": text})
}

// Event returns an event of the dialect by the agent's name for it.
func (d *Dialect) Event(name string) (*EventSpec, error) {
	if e := d.Events[name]; e != nil {
		return e, nil
	}
	return nil, fmt.Errorf("hook: %s has no event %.40q that is used here", d.Agent, name)
}

// Has reports whether an answer has a form at this event.
func (e *EventSpec) Has(f Form) bool { return e.Forms[f] != nil }

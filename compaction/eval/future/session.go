package future

import (
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Session is a recorded session and the compactions in it. A tool message whose
// call failed has [abi.MetadataIsError] in its metadata.
type Session struct {
	// Name is for reports.
	Name        string
	Messages    []abi.Message
	Compactions []Compaction
	// Partial sessions begin in the middle: a summary may state what the log does not
	// hold.
	Partial bool
	// Times are when the messages were recorded; nil when that is not known.
	Times []time.Time
}

// Compaction is a place in a session where the vendor compacted.
type Compaction struct {
	// At is the number of messages before it.
	At int
	// Summary is the vendor's text; empty when it was not recorded.
	Summary string
	// Continued reports that the session continues from the summary.
	Continued bool
}

// Window is a compaction with what came before and after it.
type Window struct {
	Session string
	// Before is what the summary replaces, After what follows, up to the next
	// compaction.
	Before, After []abi.Message
	// Times are those of Before and After, as far as they are known.
	Times []time.Time
	// Vendor is the vendor's own summary.
	Vendor string
	// Needed are the facts of Before that After needs.
	Needed []Fact
	// Partial windows are those of partial sessions.
	Partial bool
}

// First returns the first compaction of a session as a window. It reports false
// when there is none whose summary was recorded and from which the session
// continues.
func First(s Session) (Window, bool) {
	for i, c := range s.Compactions {
		if c.Summary == "" || !c.Continued || c.At <= 0 || c.At >= len(s.Messages) {
			continue
		}
		if i > 0 { // what was compacted before is no longer what the vendor saw
			return Window{}, false
		}
		end := len(s.Messages)
		if i+1 < len(s.Compactions) {
			end = s.Compactions[i+1].At
		}
		w := Window{Session: s.Name, Before: withoutSystem(s.Messages[:c.At]), After: s.Messages[c.At:end], Vendor: c.Summary, Partial: s.Partial}
		if len(s.Times) == len(s.Messages) {
			w.Times = s.Times[c.At-len(w.Before) : end]
		}
		w.Needed = Needed(w.Before, w.After)
		return w, len(w.Before) > 0
	}
	return Window{}, false
}

// withoutSystem leaves out leading system messages, which no compaction replaces.
func withoutSystem(messages []abi.Message) []abi.Message {
	for i := range messages {
		if messages[i].Role != abi.RoleSystem {
			return messages[i:]
		}
	}
	return nil
}

// failed reports a tool message whose call failed.
func failed(m *abi.Message) bool {
	mark, _ := m.Metadata[abi.MetadataIsError].(bool)
	return mark
}

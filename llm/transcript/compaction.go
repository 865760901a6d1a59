package transcript

import (
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Compaction is a compaction that was made while the session was recorded. The
// messages before it are still among the entries.
type Compaction struct {
	// At is the index of the first entry behind it; the number of entries when
	// nothing follows.
	At int
	// Kept is the index of the first of the entries before At that the agent kept
	// verbatim, as far as that is recorded, else At.
	Kept int
	// Summary is what the vendor's model wrote. It is empty where the recording
	// does not hold it, as when the provider encrypts it.
	Summary string
	// Continued reports that entries behind it continue from the summary.
	Continued bool
	// TokensBefore is how long the conversation was, zero when it is not recorded.
	TokensBefore int64
	// Line is where the compaction stands, from 1.
	Line int
	// Time is when it was made; zero when that is not known.
	Time time.Time
}

// cut is a compaction while a file is read.
type cut struct {
	Compaction
	// linked reports that entries refer to what they continue from.
	linked bool
	// firstKept is the id of the first message that was kept.
	firstKept string
	// void compactions replace nothing that the file holds.
	void bool
}

// place finds where the compactions stand among repaired entries. One with
// nothing before it is left out.
func place(cuts []cut, entries []Entry) []Compaction {
	var out []Compaction
	at := 0
	for _, c := range cuts {
		for at < len(entries) && (entries[at].Line <= c.Line || entries[at].Message.Role == abi.RoleTool) {
			at++
		}
		if at == 0 || c.void {
			continue
		}
		c.At, c.Kept = at, at
		if !c.linked {
			c.Continued = at < len(entries)
		}
		for i := range entries[:at] {
			if c.firstKept != "" && entries[i].Message.ID == c.firstKept {
				c.Kept = i
				break
			}
		}
		out = append(out, c.Compaction)
	}
	return out
}

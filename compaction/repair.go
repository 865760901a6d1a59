package compaction

import (
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/compaction/verify"
)

// Repair holds a summary that a model wrote against the log that it is about: it strikes the lines that state what
// the log does not bear out, see package verify, and adds what the text lacks, in at most extra tokens. Previous is
// a summary of what came before the log, nil for none. It returns the text and the lines that it struck.
func Repair(text string, log []abi.Message, previous *string, extra int64) (repaired string, struck []string) {
	state := readLedger(StoredLedger{}, log).State
	return repair(text, log, previous, &state, extra)
}

func repair(text string, log []abi.Message, previous *string, state *abi.Ledger, extra int64) (repaired string, struck []string) {
	before := ""
	if previous != nil {
		before = *previous
	}
	text, struck = verify.New(log, state, before).Strike(text)
	if more := ledger.Supplement(state, text, int(float64(extra)*bytesPerToken)); more != "" {
		text += "\n\n" + more
	}
	return text, struck
}

package compaction

import (
	"context"
	"strings"
	"sync"
)

// notes are what a summarizer says about how a summary came about.
type notes struct {
	mu     sync.Mutex
	policy string
	said   []string
}

type notesKey struct{}

// maxNotes bounds what a summarizer may say about one summary.
const maxNotes = 8

// withNotes makes a place for what [Note] says.
func withNotes(ctx context.Context) (context.Context, *notes) {
	n := &notes{}
	return context.WithValue(ctx, notesKey{}, n), n
}

// Note is for a summarizer that does its work in another way than was asked for: what it says
// stands in the event about the compaction. Policy, if not empty, is the one that wrote the
// summary. With a context that is not of a [Compactor] it does nothing.
func Note(ctx context.Context, policy, text string) {
	n, ok := ctx.Value(notesKey{}).(*notes)
	if !ok {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if policy != "" {
		n.policy = clip(policy)
	}
	if text != "" && len(n.said) < maxNotes {
		n.said = append(n.said, clip(text))
	}
}

// read returns the policy that wrote, empty when it is the one that was asked, and what was
// said.
func (n *notes) read() (policy, said string) {
	if n == nil {
		return "", ""
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.policy, strings.Join(n.said, "; ")
}

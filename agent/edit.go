package agent

import (
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// edit replaces messages that plugins changed. It copies the log, because
// snapshots of it may be in other hands.
func (t *Thread) edit(edits []phases.Edit) {
	t.mu.Lock()
	defer t.mu.Unlock()
	copied := false
	for _, e := range edits {
		i, ok := t.index[e.MessageID]
		if !ok {
			continue
		}
		if !copied {
			t.log, copied = slices.Clone(t.log), true
		}
		t.edited[e.MessageID] = true
		// What the plugin saw may be shorter than what the log holds: only what it
		// changed is taken over.
		if e.Kind == phases.EditPin {
			t.log[i].Pinned = true
		} else {
			t.log[i].Content = e.Message.Content
		}
		t.short.edit(t.log[i])
	}
}

// answer gives a placeholder for a result the content of the result, and its
// metadata if there is some.
func (t *Thread) answer(id string, result abi.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, ok := t.index[id]
	if !ok {
		return
	}
	t.log = slices.Clone(t.log)
	t.log[i].Content = result.Content
	if len(result.Metadata) > 0 {
		metadata := maps.Clone(result.Metadata)
		for name, v := range t.log[i].Metadata {
			if _, ok := metadata[name]; !ok {
				metadata[name] = v
			}
		}
		t.log[i].Metadata = metadata
	}
	t.short.edit(t.log[i])
	t.edited[id] = true
}

// unsaved is what a checkpoint has to hold.
func (t *Thread) unsaved() Checkpoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := Checkpoint{
		From: t.savedTo, Messages: t.whole(slices.Clip(t.log[t.savedTo:])),
		Tickets: slices.Clone(t.tickets), Held: slices.Concat(t.box.Unread(), t.notified), Taken: maps.Clone(t.taken),
	}
	for id := range t.edited {
		if i := t.index[id]; i < t.savedTo {
			c.Edited = append(c.Edited, withOriginal(t.log[i], t.originals[id]))
		}
	}
	return c
}

// saved takes note of a checkpoint.
func (t *Thread) saved(to int, edited []abi.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.savedTo = to
	for i := range edited {
		delete(t.edited, edited[i].ID)
	}
}

package agent

import (
	"context"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/phases"
)

// Thread is one conversation: an append-only log, the state that plugins keep
// for it, and the notices that wait for its next run. It is safe for concurrent
// use; [Agent.Thread] makes it.
type Thread struct {
	id string

	mu    sync.Mutex
	log   []abi.Message
	index map[string]int
	state map[string]any
	held  []abi.Notice
	box   *inbox.Box
}

func newThread(id string) *Thread {
	return &Thread{id: id, index: make(map[string]int)}
}

// ID returns the thread's id.
func (t *Thread) ID() string { return t.id }

// Messages returns a copy of the log.
func (t *Thread) Messages() []abi.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.log)
}

// State returns what plugins keep for the thread, by key. It is shared; do not
// change it.
func (t *Thread) State() map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// begin opens the inbox of a run. It fails when the thread has a run.
func (t *Thread) begin(depth int) (*inbox.Box, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.box != nil {
		return nil, ErrThreadBusy
	}
	box, err := inbox.New(inbox.Config{Depth: depth, Fallback: t.hold})
	if err != nil {
		return nil, err
	}
	t.box = box
	return box, nil
}

// end closes the inbox and keeps what the run did not read.
func (t *Thread) end(state map[string]any) {
	t.mu.Lock()
	box := t.box
	t.state, t.box = state, nil
	t.mu.Unlock()
	rest := box.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	// What was read into the box came before what fell back to hold.
	t.held = append(rest, t.held...)
}

func (t *Thread) deliver(ctx context.Context, n abi.Notice) error {
	t.mu.Lock()
	box := t.box
	t.mu.Unlock()
	if box == nil {
		t.hold(n)
		return nil
	}
	return box.Send(ctx, n)
}

func (t *Thread) hold(n abi.Notice) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.held = append(t.held, n)
}

func (t *Thread) takeHeld() []abi.Notice {
	t.mu.Lock()
	defer t.mu.Unlock()
	held := t.held
	t.held = nil
	return held
}

// has says whether the log holds a message of that id.
func (t *Thread) has(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.index[id]
	return ok
}

// append adds messages to the log. The log's old part never moves, so slices
// of it handed out before stay valid.
func (t *Thread) append(messages ...abi.Message) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range messages {
		if _, taken := t.index[m.ID]; taken || m.ID == "" {
			// The last line of defence, as against a NewID that repeats itself.
			m.ID = newID()
		}
		t.index[m.ID] = len(t.log)
		t.log = append(t.log, m)
	}
}

// snapshot returns the log as it is now. The caller must not change it.
func (t *Thread) snapshot() []abi.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.log)
}

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
		t.log[i] = e.Message
	}
}

func (t *Thread) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.box != nil
}

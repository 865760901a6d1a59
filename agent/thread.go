package agent

import (
	"fmt"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/phases"
)

// Thread is one conversation: an append-only log, the state that plugins keep
// for it, and the notifications that wait for its next run. It is safe for concurrent
// use; [Agent.Thread] makes it.
type Thread struct {
	id string

	// reading is held while the checkpoints are read.
	reading sync.Mutex

	mu    sync.Mutex
	log   []abi.Message
	index map[string]int
	state map[string]any
	// notified are the notifications of plugins that no step has shown yet.
	notified []abi.Notice
	// originals are what models wrote in answers that plugins replaced, by message. The log
	// does not hold them, so no view of it does.
	originals map[string]any
	// record is that of the latest run, image the state with which a waiting one
	// continues, tickets the calls that wait for a decision.
	record  Record
	image   StateImage
	tickets []Ticket
	// runs are the ids of the thread's runs. loaded is set when the checkpoints were
	// read; savedTo so many messages of the log are saved, except for edited ones.
	runs    map[string]bool
	loaded  bool
	savedTo int
	edited  map[string]bool
	// wake has an entry when a decision came. live is the run that the thread has.
	wake chan struct{}
	live *Control
	// sealed is set when the run takes no decisions any more.
	sealed bool
	// taken are the keys of notifications that the log has and that may be delivered again, and whether
	// they were answered.
	taken map[string]bool
	// polled is closed when a run polls for notifications.
	polled chan struct{}
	// box has what was delivered, and neither a run nor the compactor has taken.
	box   *inbox.Box
	short shortened
}

func newThread(id string, box *inbox.Box) *Thread {
	return &Thread{
		id: id, box: box, index: make(map[string]int), wake: make(chan struct{}, 1),
		runs: make(map[string]bool), originals: make(map[string]any), edited: make(map[string]bool), taken: make(map[string]bool), polled: make(chan struct{}),
	}
}

// ID returns the thread's id.
func (t *Thread) ID() string { return t.id }

// Messages returns a copy of the log. An answer that plugins replaced has the original in
// abi.MetadataOriginal.
func (t *Thread) Messages() []abi.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.whole(slices.Clone(t.log))
}

// State returns what plugins keep for the thread, by key. It is shared; do not
// change it.
func (t *Thread) State() map[string]any {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state
}

// fits reports whether messages can follow the log. The log itself always ends with
// every call answered. The caller holds the lock.
func (t *Thread) fits(messages []abi.Message) error {
	if err := phases.CheckStructure(messages); err != nil {
		return fmt.Errorf("%w: %w", ErrMessages, err)
	}
	for i := range messages {
		if _, ok := t.index[messages[i].ID]; ok {
			return fmt.Errorf("%w: message %d %.80q: the thread has one with the same id", ErrMessages, i, messages[i].ID)
		}
	}
	return nil
}

// appendIdle adds messages to a thread without a run.
func (t *Thread) appendIdle(messages []abi.Message) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.live != nil {
		return ErrThreadBusy
	}
	if err := t.fits(messages); err != nil {
		return err
	}
	t.add(messages)
	return nil
}

// lastOf is the id of the newest assistant message with text that a run has kept in a
// checkpoint. The caller holds the lock.
func (t *Thread) lastOf(runID string) string {
	for i := len(t.log) - 1; i >= 0; i-- {
		if m := &t.log[i]; m.Role == abi.RoleAssistant && m.Metadata["run_id"] == runID && m.Text() != "" {
			return m.ID
		}
	}
	return ""
}

// text returns the text of a message, or nothing.
func (t *Thread) text(id string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	i, ok := t.index[id]
	if !ok {
		return ""
	}
	return t.log[i].Text()
}

// has reports whether the log holds a message of that id.
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
	t.add(messages)
}

// add does what append does. The caller holds the lock.
func (t *Thread) add(messages []abi.Message) {
	for _, m := range messages {
		if _, taken := t.index[m.ID]; taken || m.ID == "" {
			// The last line of defence, as against a NewID that repeats itself.
			m.ID = newID()
		}
		t.index[m.ID] = len(t.log)
		t.split(&m)
		t.log = append(t.log, m)
	}
}

// snapshot returns the log as it is now. The caller must not change it.
func (t *Thread) snapshot() []abi.Message {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clip(t.log)
}

// size is the length of the log.
func (t *Thread) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.log)
}

func (t *Thread) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live != nil
}

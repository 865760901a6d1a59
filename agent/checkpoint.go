package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/abi"
)

// ErrStale is a checkpoint that does not follow the one that is stored: another
// process has written to the thread.
var ErrStale = errors.New("the thread was changed by another process")

// StateImage is the state of the plugins, to continue from. Values are dynamic values
// of the contract; a codec must keep int64, float64 and bytes apart.
type StateImage struct {
	Revision uint64         `json:"revision"`
	Values   map[string]any `json:"values,omitempty"`
}

// Checkpoint is what a thread came to since the one before. Nothing in it may be
// changed.
type Checkpoint struct {
	Run Record `json:"run"`
	// From is the length of the log that the checkpoint follows; Messages come after
	// that, and Edited are those before it that changed. So a checkpoint costs what
	// the step wrote, however long the thread is.
	From     int           `json:"from"`
	Messages []abi.Message `json:"messages,omitempty"`
	Edited   []abi.Message `json:"edited,omitempty"`
	// Open is what the step under way has written: the assistant message, and the
	// results that its calls have so far. It is part of no log yet.
	Open    []abi.Message `json:"open,omitempty"`
	Tickets []Ticket      `json:"tickets,omitempty"`
	State   StateImage    `json:"state"`
	// Held are notifications that wait for the next run.
	Held []abi.Notice `json:"held,omitempty"`
	// Taken are the keys of notifications that the log has and that may be delivered again, and whether
	// the model has answered it.
	Taken map[string]bool `json:"taken,omitempty"`
	// Done are the keys of notifications of Delivery that the checkpoint acknowledges. A Checkpointer that writes to the store which has
	// them deletes them there in the same write; the run acknowledges those of another store afterwards.
	Delivery Delivery `json:"-"`
	Done     []string `json:"-"`
}

// Checkpointer keeps checkpoints. It is safe for concurrent use.
type Checkpointer interface {
	// SaveCheckpoint makes one durable, whole or not at all. It is [ErrStale] when
	// From is not the length of the log that is stored. The same checkpoint may be
	// saved twice.
	SaveCheckpoint(ctx context.Context, c Checkpoint) error
	// LoadThread returns a thread as one checkpoint with From 0, or false.
	LoadThread(ctx context.Context, thread string) (Checkpoint, bool, error)
	// FindRun returns what is known of a run, or false.
	FindRun(ctx context.Context, runID string) (Record, bool, error)
}

// Memory is a [Checkpointer] that lasts as long as the process.
type Memory struct {
	mu      sync.Mutex
	threads map[string]*Checkpoint
	runs    map[string]Record
}

// NewMemory returns an empty one.
func NewMemory() *Memory {
	return &Memory{threads: make(map[string]*Checkpoint), runs: make(map[string]Record)}
}

// SaveCheckpoint keeps a checkpoint.
func (m *Memory) SaveCheckpoint(_ context.Context, c Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.threads[c.Run.ThreadID]
	if now == nil {
		now = &Checkpoint{}
	}
	stored := len(now.Messages)
	again := c.From <= stored && sameEnd(now.Messages[c.From:], c.Messages)
	if c.From != stored && !again {
		return fmt.Errorf("agent: thread %q: %w: its log has %d messages, the checkpoint follows %d", c.Run.ThreadID, ErrStale, stored, c.From)
	}
	next := c
	next.From, next.Edited, next.Delivery, next.Done = 0, nil, nil, nil
	next.Messages = slices.Concat(now.Messages[:c.From], c.Messages)
	for _, e := range c.Edited {
		if i := slices.IndexFunc(next.Messages, func(o abi.Message) bool { return o.ID == e.ID }); i >= 0 {
			next.Messages[i] = e
		}
	}
	m.threads[c.Run.ThreadID] = &next
	m.runs[c.Run.RunID] = c.Run
	return nil
}

func sameEnd(a, b []abi.Message) bool {
	return slices.EqualFunc(a, b, func(x, y abi.Message) bool { return x.ID == y.ID })
}

// LoadThread returns what was kept of a thread.
func (m *Memory) LoadThread(_ context.Context, thread string) (Checkpoint, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.threads[thread]
	if c == nil {
		return Checkpoint{}, false, nil
	}
	out := *c
	out.Messages, out.State.Values = slices.Clone(c.Messages), maps.Clone(c.State.Values)
	return out, true, nil
}

// FindRun returns what was kept of a run.
func (m *Memory) FindRun(_ context.Context, runID string) (Record, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r, ok := m.runs[runID]
	return r, ok, nil
}

// checkpoint saves what the thread came to since the last one, and acknowledges the notifications
// that were answered. Open is what the step under way has written.
func (r *run) checkpoint(ctx context.Context, open []abi.Message) error {
	done := r.done()
	if err := r.save(ctx, open, done); err != nil {
		return err
	}
	if done != nil {
		r.acknowledged(ctx)
	}
	return nil
}

// write saves a checkpoint that acknowledges nothing.
func (r *run) write(ctx context.Context, open []abi.Message) error { return r.save(ctx, open, nil) }

// save saves a checkpoint that acknowledges what is in hand, if it is not nil.
func (r *run) save(ctx context.Context, open []abi.Message, done *hand) error {
	r.record.UpdatedAt = r.cfg.Now()
	record := r.record
	r.thread.setRecord(record)
	if r.cfg.Checkpoints == nil {
		return nil
	}
	c := r.thread.unsaved()
	c.Run, c.State = record, StateImage(r.state.Store().Export())
	c.Open = r.marked(open)
	c.Messages = r.marked(c.Messages)
	if done != nil {
		c.Delivery, c.Done = done.delivery, done.keys
	}
	if err := recovered(func() error { return r.cfg.Checkpoints.SaveCheckpoint(ctx, c) }); err != nil {
		return fmt.Errorf("storage failed: %w", err)
	}
	r.thread.saved(c.From+len(c.Messages), c.Edited)
	return nil
}

// marked says in each message which run and step wrote it. The log itself stays as
// it is.
func (r *run) marked(messages []abi.Message) []abi.Message {
	out := slices.Clone(messages)
	for i := range out {
		if out[i].Role != abi.RoleAssistant && out[i].Role != abi.RoleTool {
			continue
		}
		out[i].Metadata = maps.Clone(out[i].Metadata)
		if out[i].Metadata == nil {
			out[i].Metadata = make(map[string]any, 2)
		}
		out[i].Metadata["run_id"] = r.id.RunID
		out[i].Metadata["step_index"] = int64(r.step - 1)
	}
	return out
}

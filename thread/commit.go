package thread

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store"
)

// Commit is a change of a thread, of any of its kinds. [Threads.Commit] makes all of it in one Apply, or none. The zero Commit changes
// nothing.
type Commit struct {
	// Append has messages that come next in the log, each with an id that the caller keeps unique.
	Append []abi.Message
	// Replace has messages that replace those of the log with their ids.
	Replace []abi.Message
	// Run is the run of the messages in Append, if any.
	Run string
	// State replaces the compaction state, if its revision is still Base.
	State *compaction.State
	Base  uint64
	// Events happened to compactions of the thread.
	Events []compaction.Event
	// Put has cells of other kinds, as of a run, Delete ranges of cells that go before.
	Put    []store.Cell
	Delete []store.Range
}

// Commit applies a commit, and returns the new revision of the compaction state if the commit has one. It fails with
// compaction.ErrConflict when the state has another revision than Base, and with [ErrUnknown] when messages are to be replaced in a thread
// without a log.
func (t *Threads) Commit(ctx context.Context, thread string, c Commit) (state uint64, err error) {
	limit := callTime
	if c.depends() {
		limit = largeTime
	}
	err = t.call(ctx, thread, limit, func(ctx context.Context) error {
		if err := c.check(thread); err != nil {
			return err
		}
		change := func(s store.Snapshot) (*store.Batch, error) {
			if c.State != nil {
				state = stateRevision(s)
			}
			return c.batch(thread, s)
		}
		if c.depends() {
			_, err := store.Update(ctx, t.store, thread, c.Query(), change)
			return err
		}
		s, err := t.store.Read(ctx, thread, c.Query())
		if err != nil {
			return err
		}
		b, err := change(s)
		if err != nil || b == nil {
			return err
		}
		b.Base = store.AnyRevision
		_, err = store.ApplySurely(ctx, t.store, *b)
		return err
	})
	if err != nil {
		return 0, err
	}
	return state, nil
}

// depends reports whether the batch is right for one revision of the thread alone.
func (c *Commit) depends() bool { return len(c.Append)+len(c.Replace) > 0 || c.State != nil }

// batch makes a batch of the commit, nil if it changes nothing.
func (c *Commit) batch(thread string, s store.Snapshot) (*store.Batch, error) {
	b := &store.Batch{Thread: thread}
	if err := c.AddTo(b, s); err != nil || len(b.Put)+len(b.Append)+len(b.Delete) == 0 {
		return nil, err
	}
	return b, nil
}

// AddTo adds the commit to a batch of its thread, which is based on the revision of the snapshot that [Commit.Query] selected. It fails as
// [Threads.Commit] does.
func (c *Commit) AddTo(b *store.Batch, s store.Snapshot) error {
	b.Put, b.Delete = append(b.Put, c.Put...), append(b.Delete, c.Delete...)
	for _, part := range []func(*store.Batch, store.Snapshot) error{c.replace, c.append, c.events, c.state} {
		if err := part(b, s); err != nil {
			return err
		}
	}
	b.Put = last(b.Put)
	return nil
}

// stateRevision is that of a compaction state which is written next: greater than that of any state before, since a thread's revisions grow.
func stateRevision(s store.Snapshot) uint64 { return s.Revision + 1 }

// check refuses what could not be read back.
func (c *Commit) check(thread string) error {
	if len(c.Append) > 0 && !utf8.ValidString(thread) {
		return errors.New("the id is not valid UTF-8; give the thread another one")
	}
	for i := range c.Append {
		if c.Append[i].ID == "" {
			return fmt.Errorf("message %d has no id", i)
		}
	}
	return nil
}

// Query selects what the commit depends on.
func (c *Commit) Query() (q store.Query) {
	switch {
	case len(c.Replace) > 0:
		q = MessagesQuery(1, math.MaxInt32)
	case len(c.Append) > 0:
		q.Entries = []store.Span{{Log: MessageKind}}
	}
	if c.State != nil {
		q.Cells = append(q.Cells, store.One(compactionKind, ""))
	}
	if len(c.Events) > 0 {
		q.Entries = append(q.Entries, store.Span{Log: compactionKind})
	}
	return q
}

// append appends messages to the log. The first ones list the thread.
func (c *Commit) append(b *store.Batch, s store.Snapshot) error {
	if len(c.Append) == 0 {
		return nil
	}
	if s.Last[MessageKind] == 0 {
		b.Put = append(b.Put, Listed(b.Thread))
	}
	now := time.Now()
	for i := range c.Append {
		data, err := encoded(&c.Append[i], c.Run, now)
		if err != nil {
			return err
		}
		b.Append = append(b.Append, store.Entry{Log: MessageKind, Data: data})
	}
	return nil
}

func encoded(m *abi.Message, run string, at time.Time) ([]byte, error) {
	data, err := Encode(m)
	if err != nil {
		return nil, err
	}
	return Message{ID: m.ID, Run: run, At: at, Data: data}.Encode(), nil
}

// replace puts messages in the places of those with their ids. Run and time stay.
func (c *Commit) replace(b *store.Batch, s store.Snapshot) error {
	if len(c.Replace) == 0 {
		return nil
	}
	if s.Last[MessageKind] == 0 {
		return ErrUnknown
	}
	first, all, err := MessagesOf(s)
	if err != nil {
		return err
	}
	places := make(map[string]int, len(all))
	for i := range all {
		places[all[i].ID] = i
	}
	for i := range c.Replace {
		m := &c.Replace[i]
		place, ok := places[m.ID]
		if !ok {
			return fmt.Errorf("there is no message %.80q to replace", m.ID)
		}
		data, err := encoded(m, all[place].Run, all[place].At)
		if err != nil {
			return err
		}
		b.Put = append(b.Put, store.Cell{Kind: MessageKind, Key: Place(first + uint64(place)), Value: data}) //nolint:gosec // an index
	}
	return nil
}

func (c *Commit) state(b *store.Batch, s store.Snapshot) error {
	if c.State == nil {
		return nil
	}
	old, err := stateOf(s)
	if err != nil {
		return err
	}
	if old.Revision != c.Base {
		return compaction.ErrConflict
	}
	data, err := json.Marshal(stateCell{Revision: stateRevision(s), State: *c.State})
	b.Put = append(b.Put, store.Cell{Kind: compactionKind, Value: data})
	return err
}

// events appends events, and deletes those before the newest [MaxEvents].
func (c *Commit) events(b *store.Batch, s store.Snapshot) error {
	for i := range c.Events {
		data, err := json.Marshal(&c.Events[i])
		if err != nil {
			return err
		}
		b.Append = append(b.Append, store.Entry{Log: compactionKind, Data: data})
	}
	if n := s.Last[compactionKind] + uint64(len(c.Events)); len(c.Events) > 0 && n > MaxEvents {
		b.Trim = append(b.Trim, store.Trim{Log: compactionKind, Before: n - MaxEvents + 1})
	}
	return nil
}

// last leaves out cells that are put again later: a message may be replaced twice.
func last(cells []store.Cell) []store.Cell {
	seen, out := map[[2]string]bool{}, make([]store.Cell, 0, len(cells))
	for _, c := range slices.Backward(cells) {
		if id := [2]string{c.Kind, c.Key}; !seen[id] {
			seen[id] = true
			out = append(out, c)
		}
	}
	return out
}

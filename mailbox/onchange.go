package mailbox

import (
	"bytes"
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// batch translates a change of the thread as the view has it.
func (v *view) batch(ctx context.Context, c Change) (*store.Batch, error) {
	b := &store.Batch{Thread: v.thread, Base: v.revision}
	if c.Drop {
		b.Drop = true
		if c.Head.Fence > 0 {
			b.Put = []store.Cell{headCell(Head{Thread: v.thread, Fence: c.Head.Fence}, true)}
		}
		return b, nil
	}
	if err := v.wantOld(ctx, c); err != nil {
		return nil, err
	}
	b.Put = append(b.Put, headCell(*c.Head, false))
	keys := map[string]string{} // of dedupe, in this change
	for i := range c.Dispatches {
		if err := v.putDispatch(b, &c.Dispatches[i], keys); err != nil {
			return nil, err
		}
	}
	for key, id := range keys {
		b.Put = append(b.Put, store.Cell{Kind: kindDedupe, Key: key, Value: []byte(id)})
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		if r.Thread != v.thread {
			return nil, fmt.Errorf("mailbox: run %.80q: %w in another thread", r.ID, ErrExists)
		}
		b.Put = append(b.Put, runCell(r, c.Head.Tenant))
		if old, ok := v.cells[cellID{kindRunData, r.ID}]; !ok && len(r.Data) > 0 || ok && !bytes.Equal(old.Value, r.Data) {
			b.Put = append(b.Put, store.Cell{Kind: kindRunData, Key: r.ID, Value: r.Data})
		}
	}
	if c.Image != nil {
		b.Put = append(b.Put, store.Cell{Kind: kindImage, Value: c.Image})
	}
	if c.Signal {
		b.Notify = []string{topicDue}
	}
	return b, v.putMessages(ctx, b, c)
}

// wantOld reads what the change replaces, as far as the transition has not.
func (v *view) wantOld(ctx context.Context, c Change) error {
	ranges := []store.Range{store.One(kindHead, "")}
	for i := range c.Dispatches {
		ranges = append(ranges, store.One(kindDispatch, c.Dispatches[i].ID))
		if key := c.Dispatches[i].Dedupe; key != "" {
			ranges = append(ranges, store.One(kindDedupe, key))
		}
	}
	for i := range c.Runs {
		ranges = append(ranges, store.One(kindRunData, c.Runs[i].ID))
	}
	return v.want(ctx, ranges...)
}

// putDispatch puts a dispatch, its request if it is new, and its places in the queue and among the dedupe keys.
func (v *view) putDispatch(b *store.Batch, d *Dispatch, keys map[string]string) error {
	if d.Thread != v.thread {
		return fmt.Errorf("mailbox: dispatch %.80q: %w in another thread", d.ID, ErrExists)
	}
	var old Dispatch
	c, known := v.cells[cellID{kindDispatch, d.ID}]
	if known {
		if err := decode(v.thread, c, &old); err != nil {
			return err
		}
	} else {
		b.Put = append(b.Put, store.Cell{Kind: kindRequest, Key: d.ID, Value: d.Request})
	}
	b.Put = append(b.Put, dispatchCell(d))
	at := place(d.Priority, d.Seq)
	if d.Status == Queued {
		b.Put = append(b.Put, store.Cell{Kind: kindQueue, Key: at, Value: encode(queued{ID: d.ID, Run: d.RunID, Available: d.AvailableAt, Holding: d.Holding})})
	} else if old.Status == Queued {
		b.Delete = append(b.Delete, store.One(kindQueue, place(old.Priority, old.Seq)))
	}
	if d.Dedupe == "" {
		return nil
	}
	holder, held := v.cells[cellID{kindDedupe, d.Dedupe}]
	owner := string(holder.Value)
	if id, ok := keys[d.Dedupe]; ok {
		owner, held = id, true
	}
	switch {
	case d.Status.Terminal():
		if owner == d.ID {
			b.Delete = append(b.Delete, store.One(kindDedupe, d.Dedupe))
		}
	case held && owner != d.ID:
		return fmt.Errorf("mailbox: dispatch %.80q: dedupe key: %w", d.ID, ErrExists)
	default:
		keys[d.Dedupe] = d.ID
	}
	return nil
}

// putMessages appends messages to the log, and puts those that replace others in place of them.
func (v *view) putMessages(ctx context.Context, b *store.Batch, c Change) error {
	old, err := v.head()
	if err != nil {
		return err
	}
	length, fresh := old.Messages, map[string]bool{}
	for _, m := range c.Messages {
		refused := fmt.Errorf("mailbox: thread %.80q: message %.80q at %d: %w: the log has %d", v.thread, m.ID, m.Seq, ErrConflict, length)
		if m.Seq >= 1 && m.Seq <= old.Messages {
			known, err := v.records.Messages(ctx, v.thread, m.Seq, 1)
			if err != nil {
				return err
			}
			if len(known) != 1 || known[0].ID != m.ID {
				return refused
			}
			m.Run, m.At = known[0].Run, known[0].At
			putMessage(b, m, false)
			continue
		}
		if m.Seq != length+1 || m.ID == "" || fresh[m.ID] {
			return refused
		}
		length, fresh[m.ID] = length+1, true
		putMessage(b, m, true)
	}
	if c.Head.Messages != length {
		return fmt.Errorf("mailbox: thread %.80q: %w: the log would have %d messages, the head %d", v.thread, ErrConflict, length, c.Head.Messages)
	}
	return nil
}

// putMessage appends a message to the log, or replaces the one at its place.
func putMessage(b *store.Batch, m Message, fresh bool) {
	data := threads.Message{ID: m.ID, Run: m.Run, At: m.At, Data: m.Data}.Encode()
	seq := uint64(m.Seq) //nolint:gosec // counts from 1
	if !fresh {
		b.Put = append(b.Put, store.Cell{Kind: kindMessage, Key: threads.Place(seq), Value: data})
		return
	}
	if seq == 1 {
		b.Put = append(b.Put, threads.Listed(b.Thread))
	}
	b.Append = append(b.Append, store.Entry{Log: kindMessage, Seq: seq, Data: data})
}

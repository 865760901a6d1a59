package mailbox

import (
	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// topicDue is notified with each change that makes something due.
const topicDue = "mailbox:due"

// batch returns what a turn writes.
func (t *turn) batch(revision uint64) *store.Batch {
	b := &store.Batch{Thread: t.thread.ID, Base: revision, Put: []store.Cell{threadCell(&t.thread)}}
	for _, id := range t.putIDs {
		d := t.dispatches[id]
		t.batchDispatch(b, &d)
	}
	for _, id := range t.putRunIDs {
		r := t.runs[id]
		b.Put = append(b.Put, runCell(&r, t.thread.Tenant))
		if r.Data != nil {
			b.Put = append(b.Put, store.Cell{Kind: kindRunData, Key: id, Value: r.Data})
		}
	}
	if t.image != nil {
		b.Put = append(b.Put, store.Cell{Kind: kindImage, Value: t.image})
	}
	for i := range t.messages {
		t.batchMessage(b, &t.messages[i])
	}
	b.Put, b.Delete = append(b.Put, t.more.Put...), append(b.Delete, t.more.Delete...)
	b.Append, b.Trim = append(b.Append, t.more.Append...), append(b.Trim, t.more.Trim...)
	if t.notify {
		b.Notify = append(b.Notify, topicDue)
	}
	if t.recall && t.thread.Claim != nil {
		b.Notify = append(b.Notify, address(t.thread.Claim.Dispatch))
	}
	return b
}

// batchMessage appends a message to the log, or replaces the one at its place.
func (t *turn) batchMessage(b *store.Batch, m *Message) {
	data := threads.Message{ID: m.ID, Run: m.Run, At: m.At, Data: m.Data}.Encode()
	seq := uint64(m.Seq) //nolint:gosec // counts from 1
	if m.Seq <= t.length {
		b.Put = append(b.Put, store.Cell{Kind: kindMessage, Key: threads.Place(seq), Value: data})
		return
	}
	if seq == 1 {
		b.Put = append(b.Put, threads.Listed(b.Thread))
	}
	b.Append = append(b.Append, store.Entry{Log: kindMessage, Seq: seq, Data: data})
}

// batchDispatch puts a dispatch, its request if it is new, and its places in the queue and among the dedupe keys. A dispatch that is not
// terminal has its key.
func (t *turn) batchDispatch(b *store.Batch, d *Dispatch) {
	old, known := t.old[d.ID]
	b.Put = append(b.Put, dispatchCell(d))
	if !known {
		b.Put = append(b.Put, store.Cell{Kind: kindRequest, Key: d.ID, Value: d.Request})
	}
	switch {
	case d.Status == Queued:
		e := queued{ID: d.ID, Run: d.RunID, Available: d.AvailableAt, Holding: d.Holding}
		b.Put = append(b.Put, store.Cell{Kind: kindQueue, Key: place(d.Priority, d.Seq), Value: encode(e)})
	case known && old.Status == Queued:
		b.Delete = append(b.Delete, store.One(kindQueue, place(old.Priority, old.Seq)))
	}
	had := known && !old.Status.Terminal()
	switch has := !d.Status.Terminal(); {
	case d.Dedupe == "":
	case has && !had:
		b.Put = append(b.Put, store.Cell{Kind: kindDedupe, Key: d.Dedupe, Value: []byte(d.ID)})
	case had && !has:
		b.Delete = append(b.Delete, store.One(kindDedupe, d.Dedupe))
	}
}

package mailbox

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// record reads the record of a thread and other cells of it, as of one moment.
func (q *queue) record(ctx context.Context, thread string, cells ...store.Range) (t Thread, s store.Snapshot, err error) {
	query := store.Query{Cells: append(cells, store.One(kindThread, "")), Entries: []store.Span{{Log: kindMessage}}}
	t.ID = thread
	if s, err = q.store.Read(ctx, thread, query); err == nil {
		_, err = cell(thread, s, kindThread, "", &t)
	}
	t.Messages = max(t.Messages, int(s.Last[kindMessage])) //nolint:gosec // a count
	return t, s, wrap("thread", thread, err)
}

// cell decodes a cell of a thread, and reports whether it is there.
func cell(thread string, s store.Snapshot, kind, key string, into any) (bool, error) {
	value, ok := s.Cell(kind, key)
	if !ok {
		return false, nil
	}
	return true, decode(thread, cellID{kind, key}, value, into)
}

// Thread returns the record of a thread. That of a thread that was never used has nothing but its id.
func (q *queue) Thread(ctx context.Context, thread string) (Thread, error) {
	ctx, end := q.observe(ctx, Operation{Name: "load_thread", Thread: thread})
	t, _, err := q.record(ctx, thread)
	end(false, err)
	return t, err
}

// imageOf returns the image of a thread with its record, as of one moment.
func (q *queue) imageOf(ctx context.Context, thread string) (Thread, []byte, error) {
	t, s, err := q.record(ctx, thread, store.One(kindImage, ""))
	image, _ := s.Cell(kindImage, "")
	return t, image, err
}

// Dispatch returns a dispatch without its request, or false.
func (q *queue) Dispatch(ctx context.Context, id string) (d Dispatch, ok bool, err error) {
	ctx, end := q.observe(ctx, Operation{Name: "load_dispatch", Dispatch: id})
	defer func() { end(!ok, err) }()
	thread, found, err := q.find(ctx, indexDispatch, id)
	if err != nil || !found {
		return Dispatch{}, false, err
	}
	_, d, ok, err = q.dispatchOf(ctx, thread, id)
	return d, ok, err
}

// dispatchOf returns a dispatch of a thread, or false, and the thread's record.
func (q *queue) dispatchOf(ctx context.Context, thread, id string) (t Thread, d Dispatch, ok bool, err error) {
	t, s, err := q.record(ctx, thread, store.One(kindDispatch, id))
	if err == nil {
		ok, err = cell(thread, s, kindDispatch, id, &d)
	}
	return t, d, ok && err == nil, err
}

// Run returns a run, or false.
func (q *queue) Run(ctx context.Context, id string) (Run, bool, error) {
	thread, found, err := q.find(ctx, indexRun, id)
	if err != nil || !found {
		return Run{}, false, err
	}
	_, r, ok, err := q.runOf(ctx, thread, id)
	return r, ok, err
}

// runOf returns a run of a thread, or false, and the thread's record. Without an id there is only the record.
func (q *queue) runOf(ctx context.Context, thread, id string) (t Thread, r Run, ok bool, err error) {
	t, s, err := q.record(ctx, thread, store.One(kindRun, id), store.One(kindRunData, id))
	if err == nil {
		ok, err = cell(thread, s, kindRun, id, &r)
	}
	r.Data, _ = s.Cell(kindRunData, id)
	return t, r, ok && err == nil, wrap("run", id, err)
}

// find returns the thread that has an id.
func (q *queue) find(ctx context.Context, index, id string) (thread string, found bool, err error) {
	if id == "" || !validID(id) {
		return "", false, nil // nothing was ever kept under it
	}
	list, err := q.store.Scan(ctx, store.Scan{Index: index, From: id, To: id + "\x00", Limit: 1})
	if err != nil || len(list) == 0 {
		return "", false, wrap(index, id, err)
	}
	return list[0].Thread, true, nil
}

// Messages lists messages of a thread's log by Seq, from the one at from, limit at most.
func (q *queue) Messages(ctx context.Context, thread string, from, limit int) ([]Message, error) {
	if limit <= 0 {
		return nil, context.Cause(ctx)
	}
	s, err := q.store.Read(ctx, thread, threads.MessagesQuery(uint64(max(from, 1)), limit)) //nolint:gosec // at least 1
	if err != nil {
		return nil, wrap("log of thread", thread, err)
	}
	first, all, err := threads.MessagesOf(s)
	if err != nil {
		return nil, wrap("log of thread", thread, err)
	}
	out := make([]Message, min(limit, len(all)))
	for i := range out {
		m := &all[i]
		out[i] = Message{Seq: int(first) + i, ID: m.ID, Run: m.Run, Data: m.Data, At: m.At} //nolint:gosec // a count
	}
	return out, nil
}

// Count counts dispatches by status. It may lag by some seconds.
func (q *queue) Count(ctx context.Context) (map[Status]int, error) {
	groups, err := q.store.Count(ctx, indexStatus)
	if err != nil {
		return nil, fmt.Errorf("mailbox: count: %w", err)
	}
	out := map[Status]int{}
	for status, n := range groups {
		out[Status(status)] = n
	}
	return out, nil
}

// Claims counts the claims of each tenant that has some. It sees the updates of this process that returned before it began, and all that
// were made before those, by whatever process: so of several that claim and then count, the last to claim sees the claims of all. It
// costs the same however many dispatches there are.
func (q *queue) Claims(ctx context.Context) (groups map[string]int, err error) {
	ctx, end := q.observe(ctx, Operation{Name: "count_claims"})
	defer func() { end(len(groups) == 0, err) }()
	if groups, err = q.store.Count(ctx, indexClaim); err != nil {
		return nil, fmt.Errorf("mailbox: count of claims: %w", err)
	}
	return groups, nil
}

// watchDue returns a channel that receives when something has become due. It is closed when ctx is done.
func (q *queue) watchDue(ctx context.Context) (<-chan struct{}, error) {
	return q.store.Watch(ctx, topicDue)
}

// Due lists threads for which there is something to do by a time, in the order in which processes come to them.
func (m *Mailbox) Due(ctx context.Context, by time.Time, limit int) ([]Thread, error) {
	due, _, err := m.due(ctx, dueQuery{By: by, Limit: limit})
	return due, err
}

// Image returns what the thread's executions committed as its image last.
func (m *Mailbox) Image(ctx context.Context, thread string) ([]byte, error) {
	_, image, err := m.imageOf(ctx, thread)
	return image, err
}

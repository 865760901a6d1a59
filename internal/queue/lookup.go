package queue

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/store"
)

// Thread returns the record of a thread. That of a thread that was never used has nothing but its id.
func (q *Queue) Thread(ctx context.Context, thread string) (Thread, error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpLoadThread, Thread: thread})
	t, err := q.read(ctx, thread, need{})
	end(false, err)
	if err != nil {
		return Thread{}, err
	}
	return t.thread, nil
}

// Image returns the image of a thread with its record, as of one moment.
func (q *Queue) Image(ctx context.Context, thread string) (Thread, []byte, error) {
	s, err := q.store.Read(ctx, thread, store.Query{Cells: []store.Range{store.One(kindThread, ""), store.One(kindImage, "")}})
	t := Thread{ID: thread}
	if value, ok := s.Cell(kindThread, ""); ok && err == nil {
		err = decode(thread, cellID{kind: kindThread}, value, &t)
	}
	image, _ := s.Cell(kindImage, "")
	return t, image, wrap("thread", thread, err)
}

// Dispatch returns a dispatch without its request, or false.
func (q *Queue) Dispatch(ctx context.Context, id string) (d Dispatch, ok bool, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpLoadDispatch, Dispatch: id})
	defer func() { end(!ok, err) }()
	thread, found, err := q.find(ctx, indexDispatch, id)
	if err != nil || !found {
		return Dispatch{}, false, err
	}
	_, d, ok, err = q.DispatchOf(ctx, thread, id)
	return d, ok, err
}

// DispatchOf returns a dispatch of a thread, or false, and the thread's record.
func (q *Queue) DispatchOf(ctx context.Context, thread, id string) (Thread, Dispatch, bool, error) {
	t, err := q.read(ctx, thread, need{dispatches: []string{id}})
	if err != nil {
		return Thread{}, Dispatch{}, false, err
	}
	d, ok := t.dispatches[id]
	return t.thread, d, ok, nil
}

// Run returns a run, or false.
func (q *Queue) Run(ctx context.Context, id string) (Run, bool, error) {
	thread, found, err := q.find(ctx, indexRun, id)
	if err != nil || !found {
		return Run{}, false, err
	}
	_, r, ok, err := q.RunOf(ctx, thread, id)
	return r, ok, err
}

// RunOf returns a run of a thread, or false, and the thread's record. Without an id there is only the record.
func (q *Queue) RunOf(ctx context.Context, thread, id string) (t Thread, r Run, ok bool, err error) {
	s, err := q.store.Read(ctx, thread, store.Query{Cells: []store.Range{
		store.One(kindThread, ""), store.One(kindRun, id), store.One(kindRunData, id),
	}})
	t.ID = thread
	if value, found := s.Cell(kindThread, ""); found && err == nil {
		err = decode(thread, cellID{kind: kindThread}, value, &t)
	}
	value, ok := s.Cell(kindRun, id)
	if ok && err == nil {
		err = decode(thread, cellID{kindRun, id}, value, &r)
	}
	r.Data, _ = s.Cell(kindRunData, id)
	return t, r, ok && err == nil, wrap("run", id, err)
}

// HasDispatch reports whether some thread has a dispatch of that id.
func (q *Queue) HasDispatch(ctx context.Context, id string) (bool, error) {
	_, found, err := q.find(ctx, indexDispatch, id)
	return found, err
}

// HasRun reports whether some thread has a run of that id.
func (q *Queue) HasRun(ctx context.Context, id string) (bool, error) {
	_, found, err := q.find(ctx, indexRun, id)
	return found, err
}

// find returns the thread that has an id.
func (q *Queue) find(ctx context.Context, index, id string) (thread string, found bool, err error) {
	if id == "" || !validID(id) {
		return "", false, nil // nothing was ever kept under it
	}
	list, err := q.store.Scan(ctx, store.Scan{Index: index, From: id, To: id + "\x00", Limit: 1})
	if err != nil || len(list) == 0 {
		return "", false, wrap(index, id, err)
	}
	return list[0].Thread, true, nil
}

// Count counts dispatches by status. It may lag by some seconds.
func (q *Queue) Count(ctx context.Context) (map[Status]int, error) {
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
func (q *Queue) Claims(ctx context.Context) (map[string]int, error) {
	groups, err := q.store.Count(ctx, indexClaim)
	if err != nil {
		return nil, fmt.Errorf("mailbox: claims: %w", err)
	}
	return groups, nil
}

// Watch returns a channel that receives when something has become due. It is closed when ctx is done.
func (q *Queue) Watch(ctx context.Context) (<-chan struct{}, error) {
	return q.store.Watch(ctx, topicDue)
}

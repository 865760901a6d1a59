package natsstore

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/mailbox"
)

// write puts a change into the document, after what it refers to was written. It
// refuses, before anything is written, what does not fit.
func (t *thread) write(ctx context.Context, u *update, c mailbox.Change) error {
	w := &writing{thread: t, update: u, change: &c, home: c.Head.Seq, bears: map[birthKey]bool{}}
	if err := w.check(ctx, c); err != nil {
		return err
	}
	log, err := t.checkLog(ctx, c)
	if err != nil {
		return err
	}
	if err := w.keepRuns(ctx, c); err != nil {
		return err
	}
	for i := range c.Dispatches {
		w.add(w.dispatch(ctx, c.Dispatches[i]))
	}
	for i := range c.Runs {
		w.add(w.run(ctx, c.Runs[i]))
	}
	if c.Image != nil {
		w.jobs = append(w.jobs, w.image(c.Image)...)
	}
	w.jobs = append(w.jobs, log...)
	for key := range t.assumed {
		if !w.bears[key] {
			return errStale // nothing would show that it is new
		}
	}
	if err := w.work(ctx); err != nil {
		return err
	}
	t.doc.Head = headFields(*c.Head)
	t.doc.Head.Claim = c.Head.Claim
	if c.Signal {
		t.doc.Cause = c.Dispatch
	}
	if err := t.fileLog(ctx); err != nil {
		return err
	}
	if err := t.spill(ctx); err != nil {
		return err
	}
	return t.file(ctx)
}

// writing is the first half of a write: records that stand alone, side by side.
type writing struct {
	*thread

	update *update
	change *mailbox.Change
	// carries says that a birth has taken what the head carried.
	carries bool
	home    uint64
	jobs    []job
	err     error
	// before are dispatches and runs as they were.
	dispatches map[string]dispatchNow
	runs       map[string]runNow
	// bears are the ids that are made taken.
	bears map[birthKey]bool
}

func (w *writing) add(list []job, err error) {
	w.jobs, w.err = append(w.jobs, list...), cmp.Or(w.err, err)
}

// check reads what is there, and refuses ids of other threads and a dedupe key that is taken.
func (w *writing) check(ctx context.Context, c mailbox.Change) error {
	w.dispatches, w.runs = map[string]dispatchNow{}, map[string]runNow{}
	live := map[string]string{}
	for i := range c.Dispatches {
		d := &c.Dispatches[i]
		old, ok, err := w.thread.dispatch(ctx, d.ID)
		if err != nil {
			return err
		}
		if ok {
			w.dispatches[d.ID] = old
		}
		if err := w.free(ctx, mailbox.KindDispatch, d.ID, d.Thread); err != nil {
			return err
		}
		if d.Dedupe == "" || d.Status.Terminal() {
			continue
		}
		if owner := cmp.Or(live[d.Dedupe], w.doc.holder(d.Dedupe)); owner != "" && owner != d.ID {
			return &refusal{fmt.Errorf("natsstore: dispatch %.80q: dedupe key: %w", d.ID, mailbox.ErrExists)}
		}
		live[d.Dedupe] = d.ID
	}
	for i := range c.Runs {
		r := &c.Runs[i]
		old, ok, err := w.thread.run(ctx, r.ID)
		if err != nil {
			return err
		}
		if ok {
			w.runs[r.ID] = old
		}
		if err := w.free(ctx, mailbox.KindRun, r.ID, r.Thread); err != nil {
			return err
		}
	}
	return nil
}

// dispatch puts a dispatch into the document.
func (w *writing) dispatch(ctx context.Context, d mailbox.Dispatch) (list []job, err error) {
	old, known := w.dispatches[d.ID]
	now := dispatchNow{Home: old.Home, Request: old.Request, Birth: old.Birth, Fields: dispatchFields(d)}
	now.Fields.Request = nil
	asBorn := false
	if known {
		w.doc.count(old.Fields.Status, -1)
	} else {
		var b *born
		if b, list, err = w.bear(ctx, mailbox.KindDispatch, d.ID, birth{Thread: w.id, Home: w.home, Dispatch: (*dispatchFields)(&d)}); err != nil {
			return nil, err
		}
		now.Home = b.Home
		if asBorn = b.Dispatch == (*dispatchFields)(&d); !asBorn && !bytes.Equal(b.Dispatch.Request, d.Request) {
			now.Request = &blob{}
			list = append(list, w.blob(d.Request, now.Request)...)
		}
	}
	w.doc.count(d.Status, 1)
	if d.Status.Terminal() && (w.doc.Oldest.IsZero() || d.UpdatedAt.Before(w.doc.Oldest)) {
		w.doc.Oldest = d.UpdatedAt
	}
	w.doc.enqueue(d, known, now.Birth)
	if !asBorn || d.Status != mailbox.Queued {
		w.doc.Dispatches[d.ID] = now
	}
	return list, nil
}

func (d *document) count(s mailbox.Status, n int) {
	d.Counts[s] += n
	if d.Counts[s] == 0 {
		delete(d.Counts, s)
	}
}

// enqueue puts a dispatch in its place of the queue, or takes it out.
func (d *document) enqueue(x mailbox.Dispatch, known bool, birth uint64) {
	first, runBirth := !known, uint64(0)
	if e := d.waiting.remove(x.ID); e != nil {
		first, runBirth = e.First, e.RunBirth
	}
	if x.Status != mailbox.Queued {
		return
	}
	d.waiting.add(&entry{
		ID: x.ID, Run: x.RunID, Priority: x.Priority, Seq: x.Seq, Available: millis(x.AvailableAt), Dedupe: x.Dedupe, Holding: x.Holding, First: first,
		Birth: birth, RunBirth: runBirth,
	})
}

// keepRuns puts runs into the document that are as they were born, when the entry that says so goes.
func (w *writing) keepRuns(ctx context.Context, c mailbox.Change) error {
	for i := range c.Dispatches {
		e := w.doc.waiting.get(c.Dispatches[i].ID)
		if e == nil || !e.First || c.Dispatches[i].Status == mailbox.Queued {
			continue
		}
		id := e.Run
		if _, there := w.doc.Runs[id]; there || slices.ContainsFunc(c.Runs, func(r mailbox.Run) bool { return r.ID == id }) {
			continue
		}
		r, ok, err := w.thread.run(ctx, id)
		if err != nil {
			return err
		}
		if ok {
			w.jobs = append(w.jobs, w.keep(r)...)
		}
	}
	return nil
}

func (w *writing) keep(r runNow) []job {
	kept := &r
	var list []job
	if r.Data.Ref == nil {
		list = w.blob(r.Data.Data, &kept.Data)
	}
	w.doc.Runs[r.Fields.ID] = *kept
	return w.later(list, func() { w.doc.Runs[r.Fields.ID] = *kept })
}

// run puts a run into the document.
func (w *writing) run(ctx context.Context, r mailbox.Run) (list []job, err error) {
	old, known := w.runs[r.ID]
	if !known {
		var b *born
		if b, list, err = w.bear(ctx, mailbox.KindRun, r.ID, birth{Thread: w.id, Home: w.home, Run: (*runFields)(&r)}); err != nil {
			return nil, err
		}
		if b.Run == (*runFields)(&r) && w.doc.first(r.ID) {
			return list, nil
		}
		old.Home = b.Home
	}
	now := &runNow{Home: old.Home, Data: old.Data, Fields: runFields(r)}
	now.Fields.Data = nil
	data, err := w.bytes(ctx, old.Data)
	if err != nil {
		return nil, err
	}
	var blobs []job
	if !bytes.Equal(data, r.Data) || old.Data.Ref == nil {
		if old.Data.Ref != nil {
			w.old = append(w.old, *old.Data.Ref)
		}
		blobs = w.blob(r.Data, &now.Data)
	}
	w.doc.Runs[r.ID] = *now
	return append(list, w.later(blobs, func() { w.doc.Runs[r.ID] = *now })...), nil
}

func (w *writing) image(data []byte) []job {
	if old := w.doc.Image; old != nil && old.Ref != nil {
		w.old = append(w.old, *old.Ref)
	}
	w.doc.Image = &blob{}
	return w.blob(data, w.doc.Image)
}

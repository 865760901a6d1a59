package natsstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
)

// inlineSize bounds blobs that stay in the head, orphanAge is how long a birth that no head knows of keeps its
// id from other threads.
const (
	inlineSize = 1024
	orphanAge  = 5 * time.Minute
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

// job begins to write a record, and says where it is when it is written.
type job struct {
	begin func(context.Context) waiting
	done  func(ref)
}

// waiting waits for a record that is being written.
type waiting = func() (ref, error)

func (w *writing) add(list []job, err error) {
	w.jobs, w.err = append(w.jobs, list...), cmp.Or(w.err, err)
}

// writers is how many records are written at once.
const writers = 8

// work does the jobs.
func (w *writing) work(ctx context.Context) error {
	if w.err != nil || len(w.jobs) == 0 {
		return w.err
	}
	waits, refs, errs := make([]waiting, len(w.jobs)), make([]ref, len(w.jobs)), make([]error, len(w.jobs))
	wait := func(i int) { refs[i], errs[i] = waits[i]() }
	for i, j := range w.jobs {
		if i >= writers {
			wait(i - writers)
		}
		waits[i] = j.begin(ctx)
	}
	for i := max(len(w.jobs)-writers, 0); i < len(w.jobs); i++ {
		wait(i)
	}
	for i := range w.jobs {
		if errs[i] == nil {
			w.jobs[i].done(refs[i])
		}
	}
	return errors.Join(errs...)
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

// free refuses an id that belongs to another thread.
func (w *writing) free(ctx context.Context, kind mailbox.Kind, id, owner string) error {
	if owner != w.id {
		return taken(kind, id)
	}
	b := w.births[birthKey{kind, id}]
	if b == nil || b.Thread == w.id {
		return nil
	}
	if time.Since(b.at) < orphanAge {
		return taken(kind, id)
	}
	var known bool
	err := w.s.read(ctx, b.Thread, func(t *thread) (err error) {
		known, err = t.knows(ctx, kind, id)
		return err
	})
	if err == nil && known {
		return taken(kind, id)
	}
	return err
}

func taken(kind mailbox.Kind, id string) error {
	return &refusal{fmt.Errorf("natsstore: %s %.80q: %w in another thread", kind, id, mailbox.ErrExists)}
}

// bear makes an id taken. A birth that is left from somebody else who did not get through stays as it is.
func (w *writing) bear(ctx context.Context, kind mailbox.Kind, id string, b birth) (out *born, list []job, err error) {
	key := birthKey{kind, id}
	out = &born{birth: b, at: time.Now()}
	var expected uint64
	if old := w.births[key]; old != nil {
		expected = old.ref.Seq
		if old.Thread == w.id {
			if out = old; out.raw == nil {
				return nil, nil, errStale // it was needed by a head, and is not
			}
		}
	}
	if out.raw == nil {
		if err := w.encode(ctx, out); err != nil {
			return nil, nil, err
		}
	}
	w.bears[key] = true
	mine := expected == 0 || slices.ContainsFunc(w.update.births, func(r ref) bool { return r.Seq == expected })
	subject := w.s.names.birth(kind, id)
	return out, []job{{
		begin: func(ctx context.Context) waiting {
			wait := w.s.begin(ctx, w.id, subject, out.raw, jetstream.WithExpectLastSequencePerSubject(expected))
			return func() (ref, error) {
				r, err := wait()
				if overtaken(err) {
					err = errAgain
				}
				return r, err
			}
		},
		done: func(r ref) {
			if mine { // else somebody else may need it by now
				w.update.births = append(w.update.births, r)
			}
			out.ref = r
			w.births[key] = out
			w.doc.bear(key, r.Seq)
		},
	}}, nil
}

// encode encodes a birth, with what it carries if it is of a dispatch.
func (w *writing) encode(ctx context.Context, b *born) (err error) {
	if b.Dispatch != nil {
		if err := w.carry(ctx, b); err != nil {
			return err
		}
	}
	b.raw, err = together(itemSize+b.room(), b.add)
	b.size = len(b.raw) - b.room()
	b.Load, b.Pages = nil, nil
	return err
}

// bear notes the number of a birth with what refers to it.
func (d *document) bear(key birthKey, seq uint64) {
	if x, ok := d.Dispatches[key.id]; ok && key.kind == mailbox.KindDispatch {
		x.Birth = seq
		d.Dispatches[key.id] = x
	}
	d.waiting.bear(key, seq)
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

// later adds to what happens when jobs are done.
func (w *writing) later(list []job, then func()) []job {
	for i := range list {
		done := list[i].done
		list[i].done = func(r ref) { done(r); then() }
	}
	return list
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

// blob puts bytes into a document, or beside it.
func (w *writing) blob(data []byte, to *blob) []job {
	*to = blob{Data: slices.Clone(data)}
	if len(data) <= inlineSize {
		return nil
	}
	return []job{{
		begin: func(ctx context.Context) waiting { return w.s.begin(ctx, w.id, w.s.names.part(w.id), to.Data) },
		done: func(r ref) {
			*to = blob{Ref: &r}
			w.made = append(w.made, r)
		},
	}}
}

func (w *writing) image(data []byte) []job {
	if old := w.doc.Image; old != nil && old.Ref != nil {
		w.old = append(w.old, *old.Ref)
	}
	w.doc.Image = &blob{}
	return w.blob(data, w.doc.Image)
}

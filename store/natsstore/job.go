package natsstore

import (
	"context"
	"errors"
	"slices"
)

// inlineSize bounds blobs that stay in the head.
const inlineSize = 1024

// job begins to write a record, and says where it is when it is written.
type job struct {
	begin func(context.Context) waiting
	done  func(ref)
}

// waiting waits for a record that is being written.
type waiting = func() (ref, error)

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

// later adds to what happens when jobs are done.
func (w *writing) later(list []job, then func()) []job {
	for i := range list {
		done := list[i].done
		list[i].done = func(r ref) { done(r); then() }
	}
	return list
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

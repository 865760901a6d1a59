package natsstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
)

// orphanAge is how long a birth that no head knows of keeps its id from other threads.
const orphanAge = 5 * time.Minute

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

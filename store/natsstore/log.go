package natsstore

import (
	"context"
	"fmt"
	"sync"

	"github.com/mortise-dev/mortise/mailbox"
)

// index says where the messages of a thread are. Pages are read when they are needed.
type index struct {
	pages map[int][]ref
	dirty map[int]bool
}

// logLength is how many messages there are.
func (d *document) logLength() int { return len(d.LogPages)*messagesPerPage + len(d.Tail) }

// place finds the reference to a message of the log by its Seq.
func (t *thread) place(ctx context.Context, seq int) (*ref, error) {
	n, at := (seq-1)/messagesPerPage, (seq-1)%messagesPerPage
	if n >= len(t.doc.LogPages) {
		return &t.doc.Tail[seq-1-len(t.doc.LogPages)*messagesPerPage], nil
	}
	if t.index.pages == nil {
		t.index = index{pages: map[int][]ref{}, dirty: map[int]bool{}}
	}
	list, ok := t.index.pages[n]
	if !ok {
		data, err := t.s.at(ctx, t.doc.LogPages[n].Seq)
		if err != nil {
			return nil, err
		}
		if err := decode(data, &list); err != nil {
			return nil, err
		}
		if len(list) != messagesPerPage {
			return nil, fmt.Errorf("natsstore: thread %.80q: a page of the log has %d messages: it is damaged", t.id, len(list))
		}
		t.index.pages[n] = list
	}
	return &list[at], nil
}

// knownMessage finds a message by its id. Records that the log does not refer to are from writers who did not
// get through.
func (t *thread) knownMessage(ctx context.Context, id string, length int) (m message, found bool, err error) {
	subject := t.s.names.messages(t.id, id)
	for from := uint64(1); ; {
		r, there, err := t.s.next(ctx, subject, from)
		if err != nil || !there {
			return message{}, false, err
		}
		if err := decode(r.data, &m); err != nil {
			return message{}, false, err
		}
		if m.Seq >= 1 && m.Seq <= length {
			at, err := t.place(ctx, m.Seq)
			if err != nil {
				return message{}, false, err
			}
			if at.Seq == r.Seq {
				return m, true, nil
			}
		}
		from = r.Seq + 1
	}
}

// checkLog refuses messages that do not fit, and returns the jobs that write the others.
func (t *thread) checkLog(ctx context.Context, c mailbox.Change) (jobs []job, err error) {
	before := t.doc.logLength()
	length := before
	fresh := map[string]bool{}
	for _, m := range c.Messages {
		old, known, err := t.knownMessage(ctx, m.ID, before)
		if err != nil {
			return nil, err
		}
		record := message{Seq: m.Seq, ID: m.ID, Run: m.Run, Data: m.Data, At: m.At}
		switch {
		case known && old.Seq == m.Seq:
			record.Run, record.At = old.Run, old.At
		case m.Seq == length+1 && !known && !fresh[m.ID] && m.ID != "":
			length, fresh[m.ID] = length+1, true
			t.doc.Tail = append(t.doc.Tail, ref{})
		default:
			return nil, &refusal{fmt.Errorf("natsstore: thread %.80q: message %.80q at %d: %w: the log has %d", t.id, m.ID, m.Seq, mailbox.ErrConflict, length)}
		}
		j, err := t.messageJob(ctx, record)
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, j)
	}
	if c.Head.Messages != length {
		return nil, &refusal{fmt.Errorf("natsstore: thread %.80q: %w: the log would have %d messages, the head says %d", t.id, mailbox.ErrConflict, length, c.Head.Messages)}
	}
	return jobs, nil
}

// messageJob writes a message and puts it in its place.
func (t *thread) messageJob(ctx context.Context, m message) (job, error) {
	if _, err := t.place(ctx, m.Seq); err != nil {
		return job{}, err
	}
	data, err := encode(m)
	if err != nil {
		return job{}, err
	}
	return job{
		begin: func(ctx context.Context) waiting {
			return t.s.begin(ctx, t.id, t.s.names.message(t.id, m.ID), data)
		},
		done: func(r ref) {
			t.made = append(t.made, r)
			at, _ := t.place(ctx, m.Seq) // it is in memory by now
			if at.Seq != 0 {
				t.old = append(t.old, *at)
			}
			*at = r
			if n := (m.Seq - 1) / messagesPerPage; n < len(t.doc.LogPages) {
				t.index.dirty[n] = true
			}
		},
	}, nil
}

// fileLog writes pages that changed, and new ones when the tail is long.
func (t *thread) fileLog(ctx context.Context) error {
	for n := range t.index.dirty {
		r, err := t.putPart(ctx, t.index.pages[n])
		if err != nil {
			return err
		}
		t.old = append(t.old, t.doc.LogPages[n])
		t.doc.LogPages[n] = r
	}
	for len(t.doc.Tail) >= messagesPerPage {
		r, err := t.putPart(ctx, t.doc.Tail[:messagesPerPage])
		if err != nil {
			return err
		}
		t.doc.LogPages = append(t.doc.LogPages, r)
		t.doc.Tail = t.doc.Tail[messagesPerPage:]
	}
	return nil
}

// Messages implements mailbox.Reader.
func (s *Store) Messages(ctx context.Context, id string, from, limit int) (out []mailbox.Message, err error) {
	err = s.read(ctx, id, func(t *thread) error {
		out, err = t.messages(ctx, max(from, 1), limit)
		return err
	})
	return out, err
}

func (t *thread) messages(ctx context.Context, from, limit int) ([]mailbox.Message, error) {
	length := t.doc.logLength()
	if from > length || limit <= 0 {
		return nil, nil
	}
	n := min(limit, length-from+1)
	refs := make([]ref, 0, n)
	for i := range n {
		at, err := t.place(ctx, from+i)
		if err != nil {
			return nil, err
		}
		refs = append(refs, *at)
	}
	out, errs := make([]mailbox.Message, n), make([]error, n)
	var wg sync.WaitGroup
	places := make(chan struct{}, readers)
	for i := range refs {
		places <- struct{}{}
		wg.Go(func() {
			out[i], errs[i] = t.s.message(ctx, refs[i])
			<-places
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Store) message(ctx context.Context, r ref) (mailbox.Message, error) {
	data, err := s.at(ctx, r.Seq)
	if err != nil {
		return mailbox.Message{}, err
	}
	var m message
	err = decode(data, &m)
	return mailbox.Message(m), err
}

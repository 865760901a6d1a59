package sessionstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// Bounds of what is written, in bytes: of a message, and of a record from which on the next message begins
// another one.
const (
	maxMessage = 64 << 20
	maxRecord  = 4 << 20
)

// A record of a log is lines of JSON: a head, and then a session.Line each.
type head struct {
	Thread string `json:"thread"`
}

// line is one to be written.
type line struct {
	id   string
	data []byte
}

func encode(messages []abi.Message, entry func(*abi.Message) session.Line) ([]line, error) {
	out := make([]line, 0, len(messages))
	for i := range messages {
		data, err := json.Marshal(entry(&messages[i]))
		if err != nil {
			return nil, fmt.Errorf("message %.80q: %w", messages[i].ID, err)
		}
		if len(data) > maxMessage {
			return nil, fmt.Errorf("message %.80q has %d bytes, at most %d are kept", messages[i].ID, len(data), maxMessage)
		}
		out = append(out, line{id: messages[i].ID, data: data})
	}
	return out, nil
}

// Append implements session.Store.
func (s *Store) Append(thread string, messages ...abi.Message) error {
	if err := session.Check(thread, messages); err != nil {
		return err
	}
	lines, err := encode(messages, func(m *abi.Message) session.Line { return session.Line{Message: m} })
	if err != nil {
		return wrap(thread, err)
	}
	return wrap(thread, s.call(func(ctx context.Context) error {
		l := s.enter(thread)
		defer s.leave(l)
		if err := l.take(ctx); err != nil {
			return err
		}
		defer l.give()
		return s.appendAll(ctx, l, lines)
	}))
}

// appendAll writes lines, some megabytes at a time. The caller has the lane.
func (s *Store) appendAll(ctx context.Context, l *lane, lines []line) error {
	for len(lines) > 0 {
		n, size := 1, len(lines[0].data)
		for n < len(lines) && size+len(lines[n].data) <= maxRecord {
			size += len(lines[n].data)
			n++
		}
		if err := s.append(ctx, l, lines[:n]); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// Replace implements session.Store.
func (s *Store) Replace(thread string, messages ...abi.Message) error {
	if err := session.Check(thread, messages); err != nil {
		return err
	}
	lines, err := encode(messages, func(m *abi.Message) session.Line { return session.Line{Replace: m} })
	if err != nil {
		return wrap(thread, err)
	}
	var refused error
	err = s.call(func(ctx context.Context) error {
		l := s.enter(thread)
		defer s.leave(l)
		if err := l.take(ctx); err != nil {
			return err
		}
		defer l.give()
		log, err := s.read(ctx, thread)
		if err != nil {
			return err
		}
		if refused = session.CheckReplace(thread, messages, log.Has); refused != nil {
			return nil
		}
		return s.appendAll(ctx, l, lines)
	})
	return errors.Join(refused, wrap(thread, err))
}

// Log implements session.Store.
func (s *Store) Log(thread string) (messages []abi.Message, err error) {
	err = s.call(func(ctx context.Context) error {
		log, err := s.read(ctx, thread)
		if err == nil {
			messages = log.Messages()
		}
		return err
	})
	return messages, wrap(thread, err)
}

// read puts a log together, as it is for certain: a run goes on from it, and a replacement is refused by it.
func (s *Store) read(ctx context.Context, thread string) (*session.Log, error) {
	if err := s.sure(ctx); err != nil {
		return nil, err
	}
	log, next := &session.Log{}, uint64(1)
	err := s.stream.Each(ctx, s.names.log(thread), func(r jet.Record) error {
		at, err := place(r.Subject)
		if err != nil {
			return err
		}
		if at != next {
			return fmt.Errorf("record %d of its log is missing from stream %q; restore it", next, s.names.root)
		}
		next++
		_, lines, _ := bytes.Cut(r.Data, []byte("\n"))
		for text := range bytes.SplitSeq(lines, []byte("\n")) {
			if err := log.Add(text); err != nil {
				return fmt.Errorf("record %d of its log: %w", at, err)
			}
		}
		return nil
	})
	if err == nil && next == 1 {
		err = session.ErrUnknown
	}
	return log, err
}

// Threads implements session.Store.
func (s *Store) Threads() (threads []string, err error) {
	err = s.call(func(ctx context.Context) error {
		threads = nil
		if err := s.sure(ctx); err != nil {
			return err
		}
		subjects, err := s.stream.Subjects(ctx, s.names.firsts())
		if err != nil {
			return err
		}
		for _, subject := range subjects {
			thread, err := s.threadOf(ctx, subject)
			if err != nil {
				return err
			}
			threads = append(threads, thread)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sessionstore: %w", err)
	}
	slices.Sort(threads)
	return threads, nil
}

// threadOf says whose first record a subject is. That of a long id has to be read.
func (s *Store) threadOf(ctx context.Context, subject string) (string, error) {
	if thread, ok := jet.Untoken(s.names.token(subject)); ok {
		return thread, nil
	}
	r, found, err := s.stream.Last(ctx, subject)
	if err != nil {
		return "", err
	}
	var h head
	text, _, _ := bytes.Cut(r.Data, []byte("\n"))
	if err := json.Unmarshal(text, &h); err != nil || !found || s.names.record(h.Thread, 1) != subject {
		return "", fmt.Errorf("the record of subject %s was not written by a sessionstore; delete it", subject)
	}
	return h.Thread, nil
}

package natsstore

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
)

// When a thread's messages are replaced by a snapshot: when they have twice the bytes of the state, have doubled since the last
// snapshot, and are many bytes or many messages.
const (
	rollUpBytes     = 64 << 10
	rollUpOps       = 100
	messageOverhead = 64
	chunkSize       = 256 << 10
)

// grown reports whether a thread needs a snapshot.
func (s *Store) grown(thread string) (yes bool) {
	err := s.view(func(m *mirror) {
		t := m.thread(thread)
		logged := t.logged + t.ops*messageOverhead
		yes = logged > 2*t.live && t.logged > 2*t.base && (logged >= rollUpBytes || t.ops >= rollUpOps) || s.eager && t.ops > 2
		yes = yes && m.state.Has(thread) && !t.damaged
	})
	return yes && err == nil
}

// rollUp replaces the messages of a thread by a snapshot. The caller has the thread's turn. If it fails, the messages stay as they are.
func (s *Store) rollUp(ctx context.Context, thread string) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	var c copied
	err := s.view(func(m *mirror) { c = m.copy(thread) })
	if err == nil {
		err = s.snapshot(ctx, thread, c)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, errStale) || errors.Is(err, errGone) {
		return
	}
	s.cfg.Logger.WarnContext(ctx, "natsstore_not_rolled_up", "stream", s.cfg.Stream, "error", redact(s.cfg.URL, err))
	s.mirror.mu.Lock()
	defer s.mirror.mu.Unlock()
	if t := s.mirror.threads[thread]; t != nil {
		t.base = t.logged // the next try is when there is twice as much
	}
}

// copied is a thread as it was when its roll-up began.
type copied struct {
	seq  uint64
	snap snapshot
	logs map[string][]entry
}

func (m *mirror) copy(thread string) copied {
	t := m.state.Thread(thread)
	c := copied{seq: m.thread(thread).seq, logs: map[string][]entry{}, snap: snapshot{
		Revision: t.Revision, Cells: t.Cells(), Applied: slices.Clone(t.Applied),
	}}
	for _, name := range slices.Sorted(maps.Keys(t.Logs)) {
		c.logs[name] = slices.Clone(t.Logs[name].Entries)
		c.snap.Logs = append(c.snap.Logs, logRecord{Name: name, After: t.Logs[name].After})
	}
	return c
}

// snapshot writes a snapshot, with chunks of the entries that are in operations yet.
func (s *Store) snapshot(ctx context.Context, thread string, c copied) error {
	var chunks []*nats.Msg
	var own []*chunkRecord // the chunks that are written now
	for i := range c.snap.Logs {
		l := &c.snap.Logs[i]
		tail := l.keep(c.logs[l.Name])
		data, err := s.entries(ctx, tail)
		if err != nil {
			return err
		}
		first := len(l.Chunks)
		for _, group := range groups(data) {
			body, err := encode(group)
			if err != nil {
				return err
			}
			msgs := s.split(s.names.chunks(thread, l.Name), body)
			l.Chunks = append(l.Chunks, chunkRecord{Count: uint64(len(group)), Parts: uint64(len(msgs)), Back: uint64(len(chunks))})
			chunks = append(chunks, msgs...)
		}
		for j := range l.Chunks[first:] {
			own = append(own, &l.Chunks[first+j])
		}
	}
	for _, r := range own { // Back was counted from the first one
		r.Back = uint64(len(chunks)) - r.Back
	}
	body, err := encode(&c.snap)
	if err != nil {
		return err
	}
	msgs, err := s.wrap(envelope{Thread: thread, Kind: kindSnapshot, Prev: c.seq, Writer: s.id, Body: body}, chunks)
	if err != nil {
		return err
	}
	seq, err := s.publish(ctx, msgs)
	if err != nil {
		return err
	}
	return s.awaitSeq(ctx, thread, seq)
}

// keep adds the chunks of entries to the record, and returns the entries that are in none: these are the last ones.
func (r *logRecord) keep(entries []entry) (tail []entry) {
	var last *chunk
	for i, e := range entries {
		if e.chunk == nil {
			return entries[i:]
		}
		if e.chunk != last {
			last = e.chunk
			r.Chunks = append(r.Chunks, chunkRecord{
				Count: last.count, Skip: uint64(e.index), Seq: last.seq, Parts: last.parts, //nolint:gosec // not negative
			})
		}
	}
	return nil
}

// groups divides entries into those of one chunk each.
func groups(data [][]byte) (out [][][]byte) {
	size := 0
	for _, d := range data {
		if n := cellOverhead + len(d); len(out) == 0 || size+n > chunkSize {
			out, size = append(out, nil), n
		} else {
			size += n
		}
		out[len(out)-1] = append(out[len(out)-1], d)
	}
	return out
}

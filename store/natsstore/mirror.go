package natsstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/mailbox"
)

// summary is what every process knows of each thread.
type summary struct {
	head   mailbox.Head
	counts []tally
	oldest time.Time
	gone   bool
}

func summaryOf(d document) summary {
	return summary{head: d.Head.record(), counts: tallies(d.Counts), oldest: d.Oldest, gone: d.Gone}
}

// mirror follows the heads. Its zero value is not ready: see newMirror.
type mirror struct {
	mu      sync.Mutex
	threads map[string]*mirrored
	names   *btree.Set[string]
	agenda  *agenda
	census  *census
	// seen is the number of the latest head that the server has told, and moved is closed when
	// there is a later one.
	seen  uint64
	moved chan struct{}
	// known is the number of the latest head that was put, and claims are those of each tenant. exact is the number of the latest head
	// after which the server had none left to tell.
	known, exact uint64
	claims       map[string]int
	// owed are heads that this process wrote and the server has told, until they are put: whoever writes one does, as a rule.
	owed map[uint64]*owed

	// whole says that all heads have been heard once.
	whole atomic.Bool

	following jetstream.ConsumeContext
}

// owed is a head that is put once.
type owed struct {
	once sync.Once
	put  func()
}

type mirrored struct {
	summary

	seq uint64
}

func newMirror() *mirror {
	return &mirror{threads: map[string]*mirrored{}, names: new(btree.Set[string]), agenda: newAgenda(), census: newCensus(), claims: map[string]int{}, owed: map[uint64]*owed{}, moved: make(chan struct{})}
}

// put takes a head, if it is later than the one that is known.
func (m *mirror) put(id string, seq uint64, s summary) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = max(m.known, seq)
	old, known := m.threads[id]
	if known && old.seq >= seq {
		return
	}
	if known {
		m.claim(old.head, -1)
		m.agenda.drop(dueOf(old.head))
		m.census.count(id, old.summary, -1)
	}
	if s.gone {
		s = summary{head: mailbox.Head{Thread: id}, gone: true}
		m.names.Delete(id)
	} else {
		m.names.Insert(id)
	}
	m.threads[id] = &mirrored{summary: s, seq: seq}
	m.census.count(id, s, 1)
	m.claim(s.head, 1)
	if !s.head.DueAt.IsZero() {
		m.agenda.put(dueOf(s.head))
	}
}

// latest is the number of the head of a thread, as far as it is known.
func (m *mirror) latest(id string) (seq uint64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, known := m.threads[id]
	if !known {
		return 0, false
	}
	return x.seq, true
}

// told notes how far the server has told, and how many heads it had left.
func (m *mirror) told(seq, left uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if seq > m.seen {
		m.seen = seq
		if left == 0 {
			m.exact = seq
		}
		close(m.moved)
		m.moved = make(chan struct{})
	}
}

// owe notes a head that is to be put later, and returns what does it.
func (m *mirror) owe(seq uint64, put func()) (pay func()) {
	o := &owed{put: put}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.owed[seq] = o
	return func() {
		o.once.Do(o.put)
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.owed, seq)
	}
}

// settle puts the heads up to a number that are owed.
func (m *mirror) settle(seq uint64) {
	m.mu.Lock()
	var list []*owed
	for n, o := range m.owed {
		if n <= seq {
			list = append(list, o)
		}
	}
	m.mu.Unlock()
	for _, o := range list {
		o.once.Do(o.put)
	}
}

// due answers [mailbox.Store.Due].
func (m *mirror) due(q mailbox.DueQuery) (out []mailbox.Head, next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list, next := m.agenda.due(q)
	for _, d := range list {
		out = append(out, headFields(m.threads[d.thread].head).record())
	}
	return out, next
}

// heads lists threads after that one by name, as long as take says so.
func (m *mirror) heads(after string, take func(summary) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.names.Ascend(after, func(id string) bool {
		return id == after && after != "" || take(m.threads[id].summary)
	})
}

// counts answers [mailbox.Reader.Count].
func (m *mirror) counts() mailbox.Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	return mailbox.Counts{Status: maps.Clone(m.census.dispatches)}
}

// with lists threads with dispatches of those statuses, and with a terminal one that may have changed before a time if it is not zero.
func (m *mirror) with(statuses []mailbox.Status, before time.Time) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before.IsZero() {
		return m.census.threads(statuses)
	}
	return slices.DeleteFunc(m.census.before(before), func(id string) bool {
		return !slices.ContainsFunc(m.threads[id].counts, func(x tally) bool { return wanted(statuses, x.status) })
	})
}

// follow starts to read the heads, and returns when all that are there have been read.
func (s *Store) follow(ctx, base context.Context) error {
	var consumer jetstream.Consumer
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		consumer, err = s.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
			FilterSubjects: []string{s.names.heads()}, DeliverPolicy: jetstream.DeliverAllPolicy,
		})
		return err
	})
	if err != nil {
		return fmt.Errorf("natsstore: follow the heads: %w", err)
	}
	s.mirror.following, err = consumer.Consume(func(msg jetstream.Msg) { s.hear(base, msg) }, jetstream.PullExpiry(followExpiry), jetstream.PullHeartbeat(followHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			s.cfg.Logger.DebugContext(base, "natsstore_follow", "stream", s.cfg.Name, "error", err)
		}))
	if err != nil {
		return fmt.Errorf("natsstore: follow the heads: %w", err)
	}
	if err := s.catchUp(ctx); err != nil {
		s.mirror.stop()
		return err
	}
	s.mirror.whole.Store(true)
	return nil
}

// A lost server is noticed after two heartbeats.
const (
	followHeartbeat = time.Second
	followExpiry    = 10 * time.Second
	catchUpPatience = 2 * time.Second
)

// hear takes a head from the server.
func (s *Store) hear(ctx context.Context, msg jetstream.Msg) {
	meta, err := msg.Metadata()
	if err != nil {
		return
	}
	left := meta.NumPending
	defer func() { s.mirror.told(meta.Sequence.Stream, left) }()
	if msg.Headers().Get(writerHeader) == s.id {
		pay := s.mirror.owe(meta.Sequence.Stream, func() { s.take(ctx, msg, meta.Sequence.Stream) })
		s.turns.after(s.names.threadOf(msg.Subject()), pay) // whoever writes it knows it
		return
	}
	if !s.take(ctx, msg, meta.Sequence.Stream) {
		left++
	}
}

// take puts a head that was delivered into the mirror, if it is not there. It is false if a later one is on its way.
func (s *Store) take(ctx context.Context, msg jetstream.Msg, number uint64) bool {
	if seq, _ := s.mirror.latest(s.names.threadOf(msg.Subject())); seq >= number {
		return true
	}
	d, parts, err := s.heard(ctx, msg)
	if errors.Is(err, errGone) {
		return false
	}
	if err != nil {
		s.cfg.Logger.ErrorContext(ctx, "natsstore_head_damaged", "stream", s.cfg.Name, "record", number, "error", err)
		return true
	}
	s.mirror.put(d.Head.Thread, number, summaryOf(d))
	if s.mirror.whole.Load() && !d.Gone {
		t := s.newThread(d.Head.Thread)
		t.head, t.doc = record{ref: ref{Seq: number, Parts: parts}}, d
		t.doc.ready(t.id)
		s.cache.keep(t, len(msg.Data()))
	}
	return true
}

// heard decodes a head that was delivered.
func (s *Store) heard(ctx context.Context, msg jetstream.Msg) (d document, parts []uint64, err error) {
	data := msg.Data()
	if parts, err = partsOf(msg.Headers()); err != nil {
		return d, nil, err
	}
	for _, n := range parts {
		piece, err := s.at(ctx, n)
		if err != nil {
			return d, nil, err
		}
		data = append(data, piece...)
	}
	err = d.read(data)
	return d, parts, err
}

// catchUp waits until all heads have been heard that are written now.
func (s *Store) catchUp(ctx context.Context) error {
	if err := s.sure(ctx); err != nil {
		return err
	}
	for {
		last, found, err := s.last(ctx, s.names.heads())
		if err != nil || !found {
			return err
		}
		done, err := s.mirror.wait(ctx, last.Seq)
		if done {
			s.mirror.settle(last.Seq)
		}
		if done || err != nil {
			return err
		}
	}
}

// wait waits until the server has told as far as seq, or for a while.
func (m *mirror) wait(ctx context.Context, seq uint64) (done bool, err error) {
	timer := time.NewTimer(catchUpPatience)
	defer timer.Stop()
	for {
		m.mu.Lock()
		seen, moved := m.seen, m.moved
		m.mu.Unlock()
		if seen >= seq {
			return true, nil
		}
		select {
		case <-moved:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// stop ends following, and waits until nothing more is heard.
func (m *mirror) stop() {
	if m.following != nil {
		m.following.Stop()
		<-m.following.Closed()
	}
}

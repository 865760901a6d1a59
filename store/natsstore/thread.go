package natsstore

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// thread is one reading of a thread. What hangs on the head is read when it is
// needed, once. A thread belongs to one goroutine.
type thread struct {
	s  *Store
	id string
	// head is the record of the head, with number 0 if there is none.
	head record
	doc  document

	births map[birthKey]*born
	// kept are births that an earlier update read or made. They hold if the document has their numbers.
	kept  map[birthKey]*born
	pages map[uint64]page
	// loads are what the carriers of the document carry, as far as it was read or made here, by host.
	loads map[string]page
	blobs map[uint64][]byte
	index index
	// old are records that nobody needs when the next head is written, and made those that nobody
	// needs if it is not.
	old, made []ref
	// guess says that the thread is from the cache, and that ids that it does not know are taken for new ones; those are in
	// assumed.
	guess   bool
	assumed map[birthKey]bool
}

type birthKey struct {
	kind mailbox.Kind
	id   string
}

// born is a record that makes an id taken.
type born struct {
	birth

	ref ref
	raw []byte
	at  time.Time
	// size is that of the record.
	size int
}

// open reads a head.
func (s *Store) open(ctx context.Context, id string) (*thread, error) {
	r, found, err := s.last(ctx, s.names.head(id))
	if err != nil {
		return nil, err
	}
	t := s.newThread(id)
	if found {
		t.head = r
		if err := t.doc.read(r.data); err != nil {
			return nil, err
		}
	}
	t.doc.ready(id)
	err = t.gather(ctx)
	return t, err
}

func (s *Store) newThread(id string) *thread {
	return &thread{
		s: s, id: id, births: map[birthKey]*born{}, kept: map[birthKey]*born{}, pages: map[uint64]page{}, loads: map[string]page{}, blobs: map[uint64][]byte{},
	}
}

// guessed takes a thread from the cache, or a new one if nobody knows of it. It returns nil if there is neither.
func (s *Store) guessed(id string) *thread {
	seq, known := s.mirror.latest(id)
	t := s.cache.take(id, seq)
	if t == nil && !known {
		t = s.newThread(id)
		t.doc.ready(id)
	}
	if t != nil {
		t.guess, t.assumed = true, map[birthKey]bool{}
	}
	return t
}

// ready makes the maps, and the head of a thread that is not there.
func (d *document) ready(id string) {
	if d.Gone {
		*d = document{Head: headFields{Fence: d.Head.Fence}, Writes: d.Writes}
	}
	d.Head.Thread = id
	if d.Dispatches == nil {
		d.Dispatches = map[string]dispatchNow{}
	}
	if d.Runs == nil {
		d.Runs = map[string]runNow{}
	}
	if d.Pages == nil {
		d.Pages = map[uint64]ref{}
	}
	if d.Hosts == nil {
		d.Hosts = map[uint64]string{}
	}
	if d.Counts == nil {
		d.Counts = map[mailbox.Status]int{}
	}
}

// birth reads what made an id taken, or nil.
func (t *thread) birth(ctx context.Context, kind mailbox.Kind, id string) (*born, error) {
	key := birthKey{kind, id}
	if b, ok := t.births[key]; ok {
		return b, nil
	}
	if b, ok := t.known(key); ok {
		t.births[key] = b
		return b, nil
	}
	b, err := t.s.birth(ctx, kind, id)
	if err != nil {
		return nil, err
	}
	t.births[key] = b
	return b, nil
}

// known finds a birth without reading it, or assumes that there is none.
func (t *thread) known(key birthKey) (*born, bool) {
	seq, needed := t.doc.birthOf(key)
	if b, ok := t.kept[key]; ok && seq == b.ref.Seq {
		return b, true
	}
	if !t.guess || needed {
		return nil, false
	}
	t.assumed[key] = true
	return nil, true
}

// birthOf is the number of a birth that the document needs, zero if it does not say it.
func (d *document) birthOf(key birthKey) (seq uint64, needed bool) {
	if x, ok := d.Dispatches[key.id]; ok && key.kind == mailbox.KindDispatch {
		return x.Birth, true
	}
	return d.waiting.birthOf(key)
}

func (s *Store) birth(ctx context.Context, kind mailbox.Kind, id string) (*born, error) {
	r, found, err := s.last(ctx, s.names.birth(kind, id))
	if err != nil || !found {
		return nil, err
	}
	b := &born{ref: r.ref, raw: r.data, at: r.at, size: len(r.data)}
	return b, decode(r.data, &b.birth)
}

// fetch reads births side by side.
func (t *thread) fetch(ctx context.Context, keys []birthKey) error {
	keys = slices.DeleteFunc(keys, func(k birthKey) bool {
		if _, there := t.births[k]; there || k.id == "" {
			return true
		}
		b, known := t.known(k)
		if known {
			t.births[k] = b
		}
		return known
	})
	found, err := t.s.births(ctx, keys)
	if err != nil {
		return err
	}
	for i, k := range keys {
		t.births[k] = found[i]
	}
	return nil
}

// births reads some side by side; those that are not there are nil.
func (s *Store) births(ctx context.Context, keys []birthKey) ([]*born, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	found, errs := make([]*born, len(keys)), make([]error, len(keys))
	var wg sync.WaitGroup
	places := make(chan struct{}, readers)
	for i, k := range keys {
		places <- struct{}{}
		wg.Go(func() {
			found[i], errs[i] = s.birth(ctx, k.kind, k.id)
			<-places
		})
	}
	wg.Wait()
	return found, cmp.Or(errs...)
}

// readers is how many records are read at once.
const readers = 8

// messagesPerPage is how many messages a page of the log has.
const messagesPerPage = 64

func (d *document) queued(id string) bool { return d.waiting.get(id) != nil }

// first says whether a run is as it was born.
func (d *document) first(run string) bool { return d.waiting.born(run) != nil }

// dispatch finds a dispatch of the thread, without its request.
func (t *thread) dispatch(ctx context.Context, id string) (dispatchNow, bool, error) {
	if d, ok := t.doc.Dispatches[id]; ok {
		return d, true, nil
	}
	b, err := t.birth(ctx, mailbox.KindDispatch, id)
	if err != nil {
		return dispatchNow{}, false, err
	}
	queued := t.doc.queued(id)
	if b == nil || b.Thread != t.id || b.Dispatch == nil {
		if queued {
			err = gone(mailbox.KindDispatch, id)
		}
		return dispatchNow{}, false, err
	}
	d, ok, err := t.pastDispatch(ctx, b.Home, id)
	if ok || err != nil {
		return d, ok, err
	}
	d = dispatchNow{Home: b.Home, Birth: b.ref.Seq, Fields: *b.Dispatch}
	d.Fields.Request = nil
	return d, queued, nil
}

// run finds a run of the thread, without its data.
func (t *thread) run(ctx context.Context, id string) (runNow, bool, error) {
	if r, ok := t.doc.Runs[id]; ok {
		return r, true, nil
	}
	b, err := t.birth(ctx, mailbox.KindRun, id)
	if err != nil {
		return runNow{}, false, err
	}
	first := t.doc.first(id)
	if b == nil || b.Thread != t.id || b.Run == nil {
		if first {
			err = gone(mailbox.KindRun, id)
		}
		return runNow{}, false, err
	}
	r, ok, err := t.pastRun(ctx, b.Home, id)
	if ok || err != nil {
		return r, ok, err
	}
	r = runNow{Home: b.Home, Data: blob{Data: b.Run.Data}, Fields: *b.Run}
	r.Fields.Data = nil
	return r, first, nil
}

// request reads the request of a dispatch.
func (t *thread) request(ctx context.Context, d dispatchNow) ([]byte, error) {
	if d.Request != nil {
		return t.bytes(ctx, *d.Request)
	}
	b, err := t.birth(ctx, mailbox.KindDispatch, d.Fields.ID)
	switch {
	case err != nil:
		return nil, err
	case b == nil || b.Dispatch == nil:
		return nil, gone(mailbox.KindDispatch, d.Fields.ID)
	}
	return slices.Clone(b.Dispatch.Request), nil
}

// bytes reads a blob. The result is the caller's.
func (t *thread) bytes(ctx context.Context, b blob) ([]byte, error) {
	if b.Ref == nil {
		return slices.Clone(b.Data), nil
	}
	data, ok := t.blobs[b.Ref.Seq]
	if !ok {
		var err error
		if data, err = t.s.at(ctx, b.Ref.Seq); err != nil {
			return nil, err
		}
		t.blobs[b.Ref.Seq] = data
	}
	return slices.Clone(data), nil
}

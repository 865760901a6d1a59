package natsstore

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
)

// How many records a sweep looks at, and how many at once.
const (
	sweepSize = 2000
	sweepPage = 500
	// sweepIdle is when the server forgets what it was asked.
	sweepIdle = 30 * time.Second
)

// Sweep drops records that nobody refers to, and says how many: what processes wrote that died before they wrote the head, and
// what others no longer needed and could not drop. It leaves records that are younger than Config.OrphanAge, and goes on
// where it ended last, after some 2,000 records. A store sweeps by itself every Config.OrphanAge.
func (s *Store) Sweep(ctx context.Context) (dropped int, err error) {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	p := &pass{s: s, used: map[string]map[uint64]bool{}, threads: map[string]*thread{}}
	before := time.Now().Add(-s.cfg.OrphanAge)
	for looked := 0; looked < sweepSize; {
		list, err := s.old(ctx, s.swept+1, before)
		if err != nil {
			return dropped, err
		}
		for i := range list {
			orphan, err := p.orphan(ctx, &list[i])
			if err != nil {
				return dropped, err
			}
			if orphan {
				s.drop(ctx, ref{Seq: list[i].seq})
				dropped++
			}
			s.swept = list[i].seq
		}
		if looked += len(list); len(list) < sweepPage {
			s.swept = 0
			break
		}
	}
	return dropped, nil
}

// sweepAll sweeps from time to time.
func (s *Store) sweepAll(ctx context.Context) {
	for {
		timer := time.NewTimer(s.cfg.OrphanAge/2 + rand.N(s.cfg.OrphanAge)) //nolint:gosec // not a secret
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		n, err := s.Sweep(ctx)
		if ctx.Err() == nil && (n > 0 || err != nil) {
			s.cfg.Logger.InfoContext(ctx, "natsstore_swept", "stream", s.cfg.Name, "dropped", n, "error", err)
		}
	}
}

// trace is what is known of a record without its data.
type trace struct {
	subject string
	seq     uint64
	header  nats.Header
}

// old lists records that were written before a time, from a number on, but no heads.
func (s *Store) old(ctx context.Context, from uint64, before time.Time) (list []trace, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		list = nil
		consumer, err := s.stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
			FilterSubjects: s.names.others(), HeadersOnly: true, DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from,
			InactiveThreshold: sweepIdle,
		})
		if err != nil {
			return fmt.Errorf("natsstore: sweep: %w", err)
		}
		batch, err := consumer.FetchNoWait(sweepPage)
		if err != nil {
			return fmt.Errorf("natsstore: sweep: %w", err)
		}
		for msg := range batch.Messages() {
			meta, err := msg.Metadata()
			if err != nil || !meta.Timestamp.Before(before) {
				continue
			}
			list = append(list, trace{msg.Subject(), meta.Sequence.Stream, msg.Headers()})
		}
		if err := batch.Error(); err != nil {
			return fmt.Errorf("natsstore: sweep: %w", err)
		}
		return nil
	})
	return list, err
}

// pass is one sweep. Threads are read once for it: whoever changes one meanwhile refers to records that the thread had, or to newer ones.
type pass struct {
	s       *Store
	used    map[string]map[uint64]bool
	threads map[string]*thread
}

// read calls look with a thread.
func (p *pass) read(ctx context.Context, id string, look func(*thread) error) error {
	if t, ok := p.threads[id]; ok {
		if err := look(t); !errors.Is(err, errGone) {
			return err
		}
	}
	return p.s.read(ctx, id, func(t *thread) error {
		p.threads[id] = t
		return look(t)
	})
}

// orphan says whether nobody refers to a record.
func (p *pass) orphan(ctx context.Context, r *trace) (bool, error) {
	if whole := r.header.Get(wholeHeader); whole != "" {
		return p.loose(ctx, whole, r.seq)
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(r.subject, p.s.names.root+"."), ".")
	name, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(name)
	if err != nil {
		return false, nil //nolint:nilerr // not a record of ours
	}
	switch id := string(raw); kind {
	case "x":
		used, err := p.refs(ctx, id)
		return err == nil && !used[r.seq], err
	case "d":
		return p.unborn(ctx, mailbox.KindDispatch, id, r.seq)
	case "r":
		return p.unborn(ctx, mailbox.KindRun, id, r.seq)
	}
	return false, nil
}

// loose says whether a piece belongs to no record.
func (p *pass) loose(ctx context.Context, whole string, seq uint64) (bool, error) {
	h, found, err := p.s.stream.LastHeader(ctx, whole)
	if err != nil || !found {
		return err == nil, err
	}
	parts, err := partsOf(h)
	return err == nil && !slices.Contains(parts, seq), err
}

// unborn says whether a birth is of no use to its thread.
func (p *pass) unborn(ctx context.Context, kind mailbox.Kind, id string, seq uint64) (bool, error) {
	b, err := p.s.birth(ctx, kind, id)
	if err != nil || b == nil || b.ref.Seq != seq {
		return false, err
	}
	var known bool
	err = p.read(ctx, b.Thread, func(t *thread) (err error) {
		key := birthKey{kind, id}
		t.births[key] = b
		known, err = t.knows(ctx, kind, id)
		delete(t.births, key)
		return err
	})
	return err == nil && !known, err
}

// refs are the records that a thread refers to.
func (p *pass) refs(ctx context.Context, id string) (used map[uint64]bool, err error) {
	if used, ok := p.used[id]; ok {
		return used, nil
	}
	err = p.read(ctx, id, func(t *thread) error {
		used, err = t.refs(ctx)
		return err
	})
	if err == nil {
		p.used[id] = used
	}
	return used, err
}

// refs are the records that the head refers to, and those that these refer to.
func (t *thread) refs(ctx context.Context) (map[uint64]bool, error) {
	out := map[uint64]bool{}
	blobs(out, t.doc.Dispatches, t.doc.Runs)
	dispatches, runs, err := t.filed(ctx)
	if err != nil {
		return nil, err
	}
	blobs(out, dispatches, runs)
	for _, r := range t.doc.Pages {
		out[r.Seq] = true
	}
	for _, seq := range t.doc.waiting.pages.Keys() {
		out[seq] = true
	}
	if t.doc.Image != nil && t.doc.Image.Ref != nil {
		out[t.doc.Image.Ref.Seq] = true
	}
	for _, r := range t.doc.LogPages {
		out[r.Seq] = true
	}
	for seq := range t.doc.logLength() {
		at, err := t.place(ctx, seq+1)
		if err != nil {
			return nil, err
		}
		out[at.Seq] = true
	}
	return out, nil
}

// blobs adds those of dispatches and runs.
func blobs(to map[uint64]bool, dispatches map[string]dispatchNow, runs map[string]runNow) {
	for _, d := range dispatches {
		if d.Request != nil && d.Request.Ref != nil {
			to[d.Request.Ref.Seq] = true
		}
	}
	for _, r := range runs {
		if r.Data.Ref != nil {
			to[r.Data.Ref.Seq] = true
		}
	}
}

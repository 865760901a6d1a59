package mailbox

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Bounds of what is shared: events and bytes of a batch, batches that are added at once, and bytes of an
// event's data and of its type. NATS takes no message of more than 1 MiB.
const (
	batchEvents  = 256
	batchBytes   = 512 << 10
	batchesOnce  = 64
	maxEventData = 256 << 10
	maxEventType = 256
)

// longestPause is how long to wait when the store fails.
const longestPause = 5 * time.Second

// pump adds what streams have to share to a log, some time after it came, so that no call waits for it.
type pump struct {
	box *Mailbox
	log store.Events
	// kick has an entry when there is much to add.
	kick chan struct{}
	work sync.WaitGroup
	// adding has an entry while events are being added.
	adding chan struct{}

	mu     sync.Mutex
	marked map[*stream]bool
	// busy is set while the pump runs.
	busy, closed bool
}

func newPump(m *Mailbox) *pump {
	log, ok := m.cfg.Store.(store.Events)
	if !ok || m.cfg.Events.Pause < 0 {
		return nil
	}
	return &pump{box: m, log: log, kick: make(chan struct{}, 1), adding: make(chan struct{}, 1), marked: map[*stream]bool{}}
}

// mark notes that a stream has something to share, soon if there is much.
func (p *pump) mark(s *stream, soon bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marked[s] = true
	if !p.busy && !p.closed {
		p.busy = true
		p.work.Go(p.run)
	}
	if soon {
		select {
		case p.kick <- struct{}{}:
		default:
		}
	}
}

// take returns the streams that were marked, none if the pump may rest.
func (p *pump) take() []*stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := slices.Collect(maps.Keys(p.marked))
	clear(p.marked)
	p.busy = len(list) > 0 && !p.closed
	return list
}

// run adds until there is nothing more.
func (p *pump) run() {
	usual := p.box.cfg.Events.Pause
	pause, kick := usual, p.kick
	for wait(p.box.base, pause, kick) {
		list := p.take()
		if len(list) == 0 {
			return
		}
		if p.flush(p.box.base, list...) {
			pause, kick = usual, p.kick
		} else {
			pause, kick = min(2*pause, max(usual, longestPause)), nil
		}
	}
}

// flush adds what streams have, and reports whether it did. What goes wrong is tried again later, as long as it is kept.
func (p *pump) flush(ctx context.Context, list ...*stream) bool {
	select {
	case p.adding <- struct{}{}:
		defer func() { <-p.adding }()
	case <-ctx.Done():
	}
	for len(list) > 0 && ctx.Err() == nil {
		n := min(len(list), batchesOnce)
		if err := p.add(ctx, list[:n]); err != nil {
			if ctx.Err() == nil {
				p.box.cfg.Logger.WarnContext(ctx, "mailbox_events_not_shared", "error", err)
			}
			break
		}
		list = append(slices.Clone(list[n:]), slices.DeleteFunc(list[:n], func(s *stream) bool { return !s.left() })...)
	}
	for _, s := range list {
		p.mark(s, false)
	}
	return len(list) == 0
}

// add adds one batch of each stream.
func (p *pump) add(ctx context.Context, list []*stream) error {
	var batches []store.EventBatch
	of := map[*stream]*store.EventBatch{}
	for _, s := range list {
		b, err := s.batch()
		if err != nil {
			return err
		}
		if b != nil {
			of[s] = b
			one := *b
			one.At = p.box.now()
			batches = append(batches, one)
		}
	}
	if len(batches) == 0 {
		return nil
	}
	refused, err := p.log.AppendEvents(ctx, batches...)
	if err != nil {
		return err
	}
	for _, dispatch := range refused {
		p.box.cfg.Logger.DebugContext(ctx, "mailbox_events_refused", "dispatch", dispatch) // another process continues with it
	}
	for s, b := range of {
		s.added(b)
	}
	return nil
}

// close adds what there is, and ends. The mailbox has ended before.
func (p *pump) close(ctx context.Context) {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.work.Wait()
	p.flush(ctx, p.take()...)
}

// sharedEvent is an event in a batch.
type sharedEvent struct {
	Type string `json:"t"`
	Data []byte `json:"d,omitempty"`
}

// encodeEvents makes the data of a batch.
func encodeEvents(list []Event) ([]byte, error) {
	out := make([]sharedEvent, 0, len(list))
	for _, e := range list {
		out = append(out, sharedEvent{Type: e.Type, Data: e.Data})
	}
	return json.Marshal(out)
}

// decodeEvents reads the events of a batch that come after a number.
func decodeEvents(b store.EventBatch, after uint64) ([]Event, error) {
	var list []sharedEvent
	if err := json.Unmarshal(b.Data, &list); err != nil {
		return nil, fmt.Errorf("mailbox: events of dispatch %.80q: %w", b.Stream, err)
	}
	var out []Event
	for i, e := range list {
		if seq := b.First + uint64(i); seq > after { //nolint:gosec // an index
			out = append(out, Event{Seq: seq, Type: e.Type, Data: e.Data})
		}
	}
	return out, nil
}

package mailbox

import (
	"context"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

func newPump(m *Mailbox) *pump {
	log, ok := m.cfg.Store.(store.Events)
	if !ok || m.cfg.Events.Pause < 0 {
		return nil
	}
	return &pump{
		box: m, log: log, stop: make(chan struct{}), kick: make(chan struct{}, 1), adding: make(chan struct{}, 1), marked: map[*Stream]bool{},
	}
}

// pump adds what streams have to share to a log, some time after it came, so that no call waits for it.
type pump struct {
	box  *Mailbox
	log  store.Events
	stop chan struct{}
	// kick has an entry when there is much to add.
	kick chan struct{}
	work sync.WaitGroup
	// adding has an entry while events are being added.
	adding chan struct{}

	mu     sync.Mutex
	marked map[*Stream]bool
	busy   bool
	closed bool
}

// mark notes that a stream has something to share.
func (p *pump) mark(s *Stream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marked[s] = true
	if !p.busy && !p.closed {
		p.busy = true
		p.work.Go(p.run)
	}
}

// take returns the streams that were marked, none if the pump may rest.
func (p *pump) take() []*Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := make([]*Stream, 0, len(p.marked))
	for s := range p.marked {
		list = append(list, s)
	}
	clear(p.marked)
	p.busy = len(list) > 0 && !p.closed
	return list
}

// run adds until there is nothing more.
func (p *pump) run() {
	usual := p.box.cfg.Events.Pause
	pause, kick := usual, p.kick
	for {
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-kick:
			timer.Stop()
		case <-p.stop:
			timer.Stop()
			return
		}
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

// longestPause is how long to wait when the store fails.
const longestPause = 5 * time.Second

// flush adds what streams have, and reports whether it did. What goes wrong is tried again later, as long as it is kept.
func (p *pump) flush(ctx context.Context, list ...*Stream) bool {
	select {
	case p.adding <- struct{}{}:
		defer func() { <-p.adding }()
	case <-ctx.Done():
		p.again(list)
		return false
	}
	for len(list) > 0 && ctx.Err() == nil {
		n := min(len(list), batchesOnce)
		if err := p.add(ctx, list[:n]); err != nil {
			if ctx.Err() == nil {
				p.box.cfg.Logger.WarnContext(ctx, "mailbox_events_not_shared", "error", err)
			}
			p.again(list)
			return false
		}
		rest := list[n:]
		for _, s := range list[:n] {
			if s.left() {
				rest = append(rest, s)
			}
		}
		list = rest
	}
	p.again(list)
	return len(list) == 0
}

// again marks streams that could not be shared now.
func (p *pump) again(list []*Stream) {
	for _, s := range list {
		p.mark(s)
	}
}

// add adds one batch of each stream.
func (p *pump) add(ctx context.Context, list []*Stream) error {
	var batches []store.EventBatch
	of := map[*Stream]*store.EventBatch{}
	for _, s := range list {
		b, err := s.batch()
		if err != nil {
			return err
		}
		if b != nil {
			of[s] = b
			one := *b
			one.At = p.box.queue.Now()
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

// close adds what there is, and ends.
func (p *pump) close(ctx context.Context) {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if !again {
		close(p.stop)
	}
	p.work.Wait()
	p.flush(ctx, p.take()...)
}

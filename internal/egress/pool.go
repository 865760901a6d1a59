package egress

import (
	"errors"
	"net"
	"slices"
	"sync"
	"time"
)

// idleTime is how long an idle connection is kept.
const idleTime = 30 * time.Second

// pool keeps idle connections. Each is watched by a goroutine, so that what the
// server sends unasked, or its end, takes it out. It is safe for concurrent use.
type pool struct {
	size int

	mu     sync.Mutex
	idle   []*conn
	closed bool
	wg     sync.WaitGroup
}

func newPool(size int) *pool { return &pool{size: size} }

// get takes an idle connection to the origin, nil when there is none.
func (p *pool) get(origin string) *conn {
	for {
		c := p.take(origin)
		if c == nil {
			return nil
		}
		_ = c.SetReadDeadline(time.Unix(1, 0)) // ends the watch
		<-c.watched
		var timeout net.Error
		if errors.As(c.idleErr, &timeout) && timeout.Timeout() && c.SetDeadline(time.Time{}) == nil {
			return c
		}
		_ = c.Close()
	}
}

func (p *pool) take(origin string) *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range slices.Backward(p.idle) {
		if c.origin == origin {
			p.idle = slices.Delete(p.idle, i, i+1)
			return c
		}
	}
	return nil
}

// put keeps a connection. The one that waited longest makes room.
func (p *pool) put(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = c.Close()
		return
	}
	if len(p.idle) >= p.size {
		_ = p.idle[0].Close() // its watch ends
		p.idle = slices.Delete(p.idle, 0, 1)
	}
	c.watched, c.left = make(chan struct{}), 1
	_ = c.SetReadDeadline(time.Now().Add(idleTime))
	p.idle = append(p.idle, c)
	p.wg.Go(func() { p.watch(c) })
}

// watch waits until something happens on an idle connection, and takes it out if
// it is still there.
func (p *pool) watch(c *conn) {
	_, c.idleErr = c.r.Peek(1)
	close(c.watched)
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, c); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		_ = c.Close()
	}
}

// close closes the idle connections and waits for their watches.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	for _, c := range p.idle {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

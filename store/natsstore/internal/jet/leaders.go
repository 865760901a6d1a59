package jet

import (
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"
)

// leaders tells those who wait for an answer that there is a new leader, or a new connection.
type leaders struct {
	mu  sync.Mutex
	now chan struct{}
}

// next is closed with the next change.
func (l *leaders) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now == nil {
		l.now = make(chan struct{})
	}
	return l.now
}

func (l *leaders) changed() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.now != nil {
		close(l.now)
		l.now = nil
	}
}

// electedSubjects are where servers say that a stream has a new leader.
const electedSubjects = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED.*"

// Watch hears of new leaders, for as long as the connection is there. Without it, or without the permission to subscribe, a question
// that nobody answers is put again after Link.Wait.
func (l *Link) Watch(nc *nats.Conn) error {
	theirs := nc.ReconnectHandler()
	nc.SetReconnectHandler(func(nc *nats.Conn) {
		l.leaders.changed()
		if theirs != nil {
			theirs(nc)
		}
	})
	if _, err := nc.Subscribe(electedSubjects, func(*nats.Msg) { l.leaders.changed() }); err != nil {
		return fmt.Errorf("natsstore: hear of leaders: %w", err)
	}
	return nil
}

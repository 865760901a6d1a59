package proxy

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// output writes events to the client.
type output struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	c     *http.ResponseController
	proto wire.Protocol
	last  time.Time
	begun bool
}

func newOutput(w http.ResponseWriter, p wire.Protocol) *output {
	return &output{w: w, c: http.NewResponseController(w), proto: p, last: time.Now()}
}

func (o *output) events(list ...wire.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range list {
		if _, err := o.w.Write(e.Raw); err != nil {
			return err
		}
		o.last, o.begun = time.Now(), true
	}
	return nil
}

func (o *output) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.c.Flush()
}

// pingEvery is after which silence a sign of life is sent. Clients give up after minutes.
const pingEvery = 10 * time.Second

// keepAlive sends signs of life while nothing else is sent, once there was an event of the upstream. Stop ends it.
func (o *output) keepAlive(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(pingEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				o.ping()
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

func (o *output) ping() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.begun || time.Since(o.last) < pingEvery/2 {
		return
	}
	sign := []byte(": mortise\n\n")
	if o.proto == wire.Messages {
		sign = wire.NewEvent("ping", []byte(`{"type": "ping"}`)).Raw
	}
	_, _ = o.w.Write(sign)
	_ = o.c.Flush()
	o.last = time.Now()
}

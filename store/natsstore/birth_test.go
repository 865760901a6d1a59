package natsstore_test

import (
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/store/natsstore"
)

// Two processes queue the same id at the same time. Whoever comes too late does not take the birth with him that the other one's head
// refers to.
func TestDuplicateBirths(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const name = "duplicates"
	reached, release := make(chan struct{}, 2), [2]chan struct{}{make(chan struct{}), make(chan struct{})}
	done := [2]chan error{make(chan error, 1), make(chan error, 1)}
	for i := range 2 {
		var once sync.Once
		g := &gate{root: name, at: func() {
			once.Do(func() { reached <- struct{}{}; <-release[i] })
		}}
		s := open(t, named(name), func(c *natsstore.Config) { c.Options = []nats.Option{nats.SetCustomDialer(g)} })
		q := newQueue(t, s, time.Now)
		go func() {
			_, err := q.Enqueue(ctx, newEntry("t", "d"))
			done[i] <- err
		}()
		<-reached
	}
	for i := range 2 {
		close(release[i])
		if err := <-done[i]; err != nil {
			t.Error(err)
		}
	}
	k, ok, err := newQueue(t, open(t, named(name)), time.Now).Claim(ctx, "t", claim("a"))
	if err != nil || !ok || string(k.Dispatch.Request) != "request d" {
		t.Errorf("claimed %+v, %v, %v", k.Dispatch, ok, err)
	}
}

package inbox_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// desk is a task manager whose ledger is an outbox, with a store for large
// results, as an embedder wires them.
type desk struct {
	*background.Manager

	out   *inbox.Inbox
	blobs *blob.Store

	mu   sync.Mutex
	seen []background.Event
}

func newDesk(t *testing.T, cfg background.Config) *desk {
	t.Helper()
	d := &desk{}
	r, err := blob.New(blob.Config{Store: memstore.New()})
	if err != nil {
		t.Fatal(err)
	}
	d.out = newInbox(t, inbox.Config{Acknowledged: func(ctx context.Context, thread string, ids ...string) {
		d.Acknowledge(ctx, thread, ids...)
	}})
	d.blobs = r
	cfg.Ledger, cfg.Shorten = d.out, r.Shorten
	if cfg.Observe == nil {
		cfg.Observe = d.observe
	}
	if d.Manager, err = background.New(cfg); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) observe(e background.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, e)
}

// finished returns the ends that the user interface observed.
func (d *desk) finished() (out []background.Info) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.seen {
		if e.Kind == background.EventFinished {
			out = append(out, e.Task)
		}
	}
	return out
}

func (d *desk) start(t *testing.T, body background.Body) string {
	t.Helper()
	id, err := d.Spawn(t.Context(), background.Spec{Thread: "a", Type: "task", Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// end runs tasks one after the other, each to its end.
func (d *desk) end(t *testing.T, outcomes ...any) (ids []string) {
	t.Helper()
	for _, o := range outcomes {
		id := d.start(t, func(context.Context, *background.Task) (any, error) {
			if err, ok := o.(error); ok {
				return nil, err
			}
			return o, nil
		})
		if _, err := d.WaitTask(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	synctest.Wait()
	return ids
}

func (d *desk) info(t *testing.T, id string) background.Info {
	t.Helper()
	info, ok := d.Get(id)
	if !ok {
		t.Fatalf("task %s is unknown", id)
	}
	return info
}

// read takes all notifications, and acknowledges them.
func (d *desk) read(t *testing.T) []inbox.Notification {
	t.Helper()
	got := take(t, d.out)
	list := got.Notifications()
	if err := ack(t.Context(), got, len(list)); err != nil {
		t.Fatal(err)
	}
	return list
}

func hanging(ctx context.Context, _ *background.Task) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func sequence() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprint("t", n-1)
	}
}

// each runs tests by name, each in a bubble with a desk of its own.
func each(t *testing.T, cfg background.Config, tests map[string]func(*testing.T, *desk)) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				own := cfg
				own.NewID = sequence()
				d := newDesk(t, own)
				test(t, d)
				if err := d.Manager.Close(t.Context()); err != nil && !strings.Contains(err.Error(), "abandoned") {
					t.Error(err)
				}
				closeInbox(t, d.out)
			})
		})
	}
}

package mailbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// broken is a store that can be out of order.
type broken struct {
	*memstore.Store
	down atomic.Bool
}

var errBroken = errors.New("connection refused")

func (b *broken) fails() error {
	if b.down.Load() {
		return errBroken
	}
	return nil
}

func (b *broken) Health(context.Context) error { return b.fails() }

func (b *broken) Read(ctx context.Context, thread string, q store.Query) (store.Snapshot, error) {
	if err := b.fails(); err != nil {
		return store.Snapshot{}, err
	}
	return b.Store.Read(ctx, thread, q)
}

func (b *broken) Apply(ctx context.Context, batch store.Batch) (uint64, error) {
	if err := b.fails(); err != nil {
		return 0, err
	}
	return b.Store.Apply(ctx, batch)
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.String(), "msg="+message)
}

// TestHealth: a store that is down is one state and one line, whatever is due, and all continues when it is back. A listing of what is due
// that still answers does not hide it.
func TestHealth(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"down and up": func(t *testing.T) {
			log := &lines{}
			s := &broken{Store: memstore.New()}
			m := started(t, mailbox.Config{Runtime: &script{}, Store: s, Logger: slog.New(slog.NewTextHandler(log, nil))})
			for i := range 50 {
				r := request(fmt.Sprint("t", i), "first")
				r.At = time.Now().Add(time.Minute)
				background(t, m, r)
			}
			must(t, m.Health())
			s.down.Store(true)
			sleep(5 * time.Minute)
			if err := m.Health(); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "since") {
				t.Errorf("health is %v", err)
			}
			if _, err := m.SubmitBackground(t.Context(), request("u", "first")); !errors.Is(err, errBroken) || errors.Is(err, mailbox.ErrUnknownOutcome) {
				t.Errorf("a submission fails with %v", err)
			}
			if log.count("mailbox_store_unavailable") != 1 || log.count("") != 1 {
				t.Errorf("the log has\n%s", log)
			}
			s.down.Store(false)
			sleep(time.Minute)
			must(t, m.Health())
			equal(t, "lines that it is back", log.count("mailbox_store_available"), 1)
			for i := range 50 {
				equal(t, "queued", record(t, m, fmt.Sprint("t", i)).Queued, 0)
			}
		},
	})
}

// hanging is a store whose calls wait long for an answer.
type hanging struct {
	broken

	// between is set to let the outage begin with a listing, after a probe that went well.
	between atomic.Bool
}

// answers waits until the store answers, ctx is done, or it has no patience any more.
func (h *hanging) answers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	for h.down.Load() {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func (h *hanging) Health(ctx context.Context) error { return h.answers(ctx) }

func (h *hanging) Scan(ctx context.Context, s store.Scan) ([]store.Ref, error) {
	if h.between.Swap(false) {
		h.down.Store(true)
	}
	if err := h.answers(ctx); err != nil {
		return nil, err
	}
	return h.Store.Scan(ctx, s)
}

// TestHealth_hanging: a store whose calls wait for it is known to be down as soon as one that refuses them, and so is that it is back.
func TestHealth_hanging(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"a short outage": func(t *testing.T) {
			log := &lines{}
			s := &hanging{broken: broken{Store: memstore.New()}}
			m := started(t, mailbox.Config{Runtime: &script{}, Store: s, Logger: slog.New(slog.NewTextHandler(log, nil))})
			for i := range 20 {
				sleep(10*time.Second + 130*time.Millisecond)
				must(t, m.Health())
				s.down.Store(i%2 == 0)
				s.between.Store(i%2 == 1)
				sleep(3 * time.Second)
				if err := m.Health(); err == nil || !strings.Contains(err.Error(), "it has not answered for 1s") {
					t.Errorf("health is %v", err)
				}
				s.down.Store(false)
				sleep(2 * time.Second)
				must(t, m.Health())
			}
			equal(t, "outages", log.count("mailbox_store_unavailable"), 20)
			equal(t, "ends", log.count("mailbox_store_available"), 20)
		},
	})
}

func TestSubmitBatch(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"each by itself, those of a thread in order": func(t *testing.T) {
			s := &script{}
			m := open(t, mailbox.Config{Runtime: s})
			var list []mailbox.Request
			for i := range 40 {
				list = append(list, request(fmt.Sprint("t", i%2), fmt.Sprint(i)))
			}
			list = append(list, mailbox.Request{Thread: "u"}, request("", "anywhere"))
			out := m.SubmitBatch(t.Context(), list)
			for i := range out {
				if wrong := i == 40; wrong != errors.Is(out[i].Err, mailbox.ErrInvalid) {
					t.Errorf("request %d: %v", i, out[i].Err)
				}
			}
			must(t, m.Start(t.Context()))
			sleep(time.Second)
			last := map[bool]int{false: -1, true: -1}
			for _, text := range s.ran() {
				var n int
				if _, err := fmt.Sscan(text, &n); err != nil {
					continue
				}
				if n < last[n%2 == 0] {
					t.Errorf("%d after %d", n, last[n%2 == 0])
				}
				last[n%2 == 0] = n
			}
			equal(t, "executions", len(s.ran()), 41)
			equal(t, "none", len(m.SubmitBatch(t.Context(), nil)), 0)
		},
	})
}

package mailbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// timed is a store whose clock can be set, fails, and takes its time.
type timed struct {
	store.Store

	clock  shifted
	broken atomic.Bool
	slow   atomic.Int64
}

func (s *timed) Time(context.Context) (time.Time, error) {
	if s.broken.Load() {
		return time.Time{}, errors.New("no answer")
	}
	now := s.clock.now()
	sleep(time.Duration(s.slow.Load()))
	return now, nil
}

// TestClock holds that a queue goes by the clock of its store, as the time of what it writes shows.
func TestClock(t *testing.T) {
	t.Parallel()
	cases(t, map[string]func(*testing.T){
		"local_clock_differs_and_is_set": func(t *testing.T) {
			w := newClockWorld(t, 0)
			for _, by := range []time.Duration{time.Hour, -time.Hour, 10 * time.Minute} {
				w.local.by.Store(int64(by))
				w.writes(0)
				sleep(time.Minute)
				w.writes(0)
			}
		},
		"machine_was_asleep": func(t *testing.T) { // the monotonic clock stood still
			w := newClockWorld(t, 0)
			w.writes(0)
			w.local.by.Store(int64(time.Hour))
			w.mem.clock.by.Store(int64(time.Hour))
			w.writes(time.Hour)
		},
		"store_goes_back_a_little": func(t *testing.T) {
			w := newClockWorld(t, 0)
			w.writes(0)
			sleep(9900 * time.Millisecond)
			w.writes(0)
			w.mem.clock.by.Store(int64(-500 * time.Millisecond))
			sleep(200 * time.Millisecond)
			w.writes(-200 * time.Millisecond) // it stands still
			sleep(time.Second)
			w.writes(-500 * time.Millisecond)
		},
		"store_is_set_back": func(t *testing.T) {
			w := newClockWorld(t, 0)
			w.writes(0)
			w.mem.clock.by.Store(int64(-time.Hour))
			sleep(5 * time.Second)
			w.writes(0) // the reading is young
			sleep(6 * time.Second)
			w.writes(-time.Hour)
		},
		"slow_answer_moves_nothing": func(t *testing.T) {
			w := newClockWorld(t, 0)
			w.writes(0)
			w.mem.slow.Store(int64(1500 * time.Millisecond))
			sleep(11 * time.Second)
			w.writes(0)
		},
		"no_answer": func(t *testing.T) {
			w := newClockWorld(t, 0)
			w.mem.broken.Store(true)
			if _, err := w.enqueue(); err == nil || !strings.Contains(err.Error(), "clock of the store: no answer") {
				t.Errorf("queued without a time: %v", err)
			}
			h, err := w.queue.Thread(t.Context(), "t")
			must(t, err)
			equal(t, "dispatches", h.Seq, 0)
			w.mem.broken.Store(false)
			w.writes(0)
			w.mem.broken.Store(true)
			w.local.by.Store(int64(time.Hour))
			sleep(time.Minute)
			w.writes(0)
		},
		"negative_skew": func(t *testing.T) {
			w := newClockWorld(t, -1)
			w.local.by.Store(int64(time.Hour))
			w.writes(time.Hour)
		},
		"difference_is_logged": clockLogged,
	})
}

type clockWorld struct {
	t     *testing.T
	mem   *timed
	local *shifted
	queue *mailbox.Mailbox
	count int
}

func newClockWorld(t *testing.T, skew time.Duration) *clockWorld {
	t.Helper()
	w := &clockWorld{t: t, mem: &timed{Store: plain{memstore.New()}}, local: &shifted{}}
	w.local.by.Store(int64(time.Minute))
	var err error
	w.queue, err = mailbox.New(t.Context(), mailbox.Config{Store: w.mem, Now: w.local.now, Lease: mailbox.Lease{Skew: skew}})
	must(t, err)
	return w
}

func (w *clockWorld) enqueue() (mailbox.Dispatch, error) {
	w.count++
	id := fmt.Sprint("d", w.count)
	k, err := w.queue.Enqueue(w.t.Context(), mailbox.Entry{ID: id, Request: mailbox.Request{Thread: "t", NewRun: "run of " + id}})
	return k.Dispatch, err
}

// writes checks by how much the time of what is written now differs from that of the test.
func (w *clockWorld) writes(want time.Duration) {
	w.t.Helper()
	d, err := w.enqueue()
	must(w.t, err)
	if got := time.Until(d.CreatedAt); (got - want).Abs() > time.Millisecond {
		w.t.Errorf("the time is %v off, want %v", got, want)
	}
}

// clockLogged holds that a clock which differs is logged once each time that it was set.
func clockLogged(t *testing.T) {
	mem, local := &timed{Store: plain{memstore.New()}}, &shifted{}
	local.by.Store(int64(500 * time.Millisecond))
	var out bytes.Buffer
	started(t, mailbox.Config{Runtime: &script{}, Store: mem, Now: local.now, Logger: slog.New(slog.NewTextHandler(&out, nil))})
	for _, step := range []struct {
		by   time.Duration
		want int
	}{{500 * time.Millisecond, 0}, {time.Minute, 1}, {time.Minute, 1}, {-time.Hour, 2}} {
		local.by.Store(int64(step.by))
		sleep(3 * time.Second)
		lines := strings.Count(out.String(), "mailbox_clock_differs")
		if last := fmt.Sprintf("ahead=%v", step.by); lines != step.want || lines > 0 && !strings.Contains(out.String(), last) {
			t.Errorf("%d lines with a clock that is %v ahead: %s", lines, step.by, out.String())
		}
	}
}

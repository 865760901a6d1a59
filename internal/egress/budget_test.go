package egress_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/egress"
)

// clock is a clock that stands still until it is moved.
type clock struct{ nanos atomic.Int64 }

func (c *clock) now() time.Time       { return time.Unix(0, c.nanos.Load()) }
func (c *clock) move(d time.Duration) { c.nanos.Add(int64(d)) }

func TestBucketIsExact(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1, 7, 60, 1000003, math.MaxInt64} {
		var c clock
		b := egress.NewBucket(size, c.now)
		if !b.Take(size) || b.Take(1) {
			t.Fatalf("size %d: not full at the beginning", size)
		}
		// Steps that do not divide a minute add up to it all the same.
		var got int64
		for passed := time.Duration(0); passed < time.Minute; {
			step := min(1234567891*time.Nanosecond, time.Minute-passed)
			passed += step
			c.move(step)
			if size > 1<<40 {
				continue // counted below, in one step
			}
			for b.Take(1) {
				got++
				if size > 1000 {
					n := size / 100
					for b.Take(n) {
						got += n
					}
				}
			}
		}
		if size <= 1<<40 && got != size {
			t.Errorf("size %d: %d came in within a minute", size, got)
		}
		if size > 1<<40 && (!b.Take(size) || b.Take(1)) {
			t.Errorf("size %d: not full after a minute", size)
		}
		c.move(-time.Hour)
		if b.Take(1) {
			t.Errorf("size %d: a clock that went back filled it", size)
		}
		c.move(24 * time.Hour)
		if !b.Take(size) || b.Take(1) {
			t.Errorf("size %d: overfull after a day", size)
		}
	}
	var c clock
	b := egress.NewBucket(10, c.now)
	if !b.Drain(7) || b.Drain(4) || b.Take(1) {
		t.Error("what cannot be drained is not taken")
	}
}

// Brokers that share a budget use it up together, each up to what its own policy allows.
func TestBudgetIsShared(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(http.ResponseWriter, *http.Request) {})
	var c clock
	var budget egress.Budget
	at := func(perMinute int) *egress.Broker {
		return broker(t, func(cfg *egress.Config) {
			cfg.Policy.PerMinute, cfg.Now, cfg.Budget = perMinute, c.now, &budget
		})
	}
	ask := func(b *egress.Broker) (n int) {
		for {
			_, err := b.Do(t.Context(), egress.Request{URL: url})
			if r, ok := errors.AsType[*egress.Refusal](err); ok && r.Reason == egress.ReasonRate {
				return n
			}
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	}
	small, large, less := at(10), at(16), at(5)
	for _, step := range []struct {
		what string
		b    *egress.Broker
		want int
	}{
		{"the first", small, 10}, {"another one, of a larger budget", large, 6}, {"one of a smaller budget", less, 0}, {"the first again", small, 0},
	} {
		if n := ask(step.b); n != step.want {
			t.Errorf("%s got %d requests through, want %d", step.what, n, step.want)
		}
	}
	c.move(45 * time.Second) // at 10 a minute, and then at 16: 7.5 less, and more for the next one
	if n := ask(small); n != 1 {
		t.Errorf("the first got %d requests through after a while, want 1", n)
	}
	c.move(time.Minute)
	if n := ask(less); n != 5 {
		t.Errorf("the smaller one got %d requests through after a minute, want 5", n)
	}
}

func TestRateIsExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	var served, running, most atomic.Int64
	url := serve(t, "https", "a.example.com", func(http.ResponseWriter, *http.Request) {
		now := running.Add(1)
		defer running.Add(-1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		served.Add(1)
	})
	var c clock
	b := broker(t, func(cfg *egress.Config) {
		cfg.Policy.PerMinute, cfg.Policy.Concurrent, cfg.Now = 30, 3, c.now
	})
	burst := func() {
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() {
				_, err := b.Do(t.Context(), egress.Request{URL: url})
				if r, ok := errors.AsType[*egress.Refusal](err); err != nil && (!ok || r.Reason != egress.ReasonRate) {
					t.Errorf("got %v", err)
				}
			})
		}
		wg.Wait()
	}
	burst()
	if served.Load() != 30 {
		t.Errorf("served %d, want 30", served.Load())
	}
	c.move(10 * time.Second)
	burst()
	if served.Load() != 35 {
		t.Errorf("served %d after ten seconds, want 35", served.Load())
	}
	s := b.Stats()
	if most.Load() > 3 || s.Requests != 120 || s.Refused[egress.ReasonRate] != 85 {
		t.Errorf("%d at once, stats %+v", most.Load(), s)
	}
}

func TestRefusedRequestsCostNoBudget(t *testing.T) {
	t.Parallel()
	url := serve(t, "https", "a.example.com", func(http.ResponseWriter, *http.Request) {})
	b := broker(t, func(c *egress.Config) { c.Policy.PerMinute = 1 })
	for range 10 {
		_ = refused(t, b, egress.Request{URL: "https://evil.test/"}, egress.ReasonHost)
		_ = refused(t, b, egress.Request{URL: url, Header: http.Header{"Authorization": {"{{secret.unknown}}"}}}, egress.ReasonSecret)
	}
	get(t, b, egress.Request{URL: url})
}

// A plugin cannot make the operator's store of secrets work beyond its budget.
func TestSecretsAreReadWithinTheBudget(t *testing.T) {
	t.Parallel()
	var reads atomic.Int64
	url := serve(t, "https", "a.example.com", func(http.ResponseWriter, *http.Request) {})
	b := broker(t, func(c *egress.Config) {
		c.Policy.PerMinute = 2
		c.Secrets = map[string]egress.Secret{"key": {Hosts: []string{"a.example.com:*"}, Value: func(context.Context) (string, error) {
			reads.Add(1)
			return "correct-horse", nil
		}}}
	})
	req := egress.Request{URL: url, Header: http.Header{"Authorization": {"{{secret.key}} {{secret.key}}"}}}
	get(t, b, req)
	get(t, b, req)
	for range 10 {
		_ = refused(t, b, req, egress.ReasonRate)
	}
	if reads.Load() != 2 {
		t.Errorf("the secret was read %d times", reads.Load())
	}
}

// What plugins get and send never passes the budget, whichever way they share it.
func TestBytesAreExactUnderConcurrency(t *testing.T) {
	t.Parallel()
	const size, budget = 1000, 10_000
	var wire atomic.Int64
	l := raw(t, func(c net.Conn) {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1000\r\n\r\n"+strings.Repeat("x", size))
	})
	var c clock
	b := broker(t, func(cfg *egress.Config) {
		cfg.Policy.BytesPerMinute, cfg.Policy.PerMinute, cfg.Now = budget, 1000, c.now
	})
	var wg sync.WaitGroup
	var good atomic.Int64
	for range 40 {
		wg.Go(func() {
			resp, err := b.Do(t.Context(), egress.Request{URL: l})
			if err == nil {
				good.Add(1)
				wire.Add(int64(len(resp.Body)))
				return
			}
			if r, ok := errors.AsType[*egress.Refusal](err); !ok || r.Reason != egress.ReasonBytes {
				t.Errorf("got %v", err)
			}
		})
	}
	wg.Wait()
	if wire.Load() > budget || good.Load() == 0 || good.Load() > budget/size {
		t.Errorf("%d bytes in %d responses", wire.Load(), good.Load())
	}
	_ = refused(t, b, egress.Request{URL: l}, egress.ReasonBytes)
	c.move(time.Minute)
	get(t, b, egress.Request{URL: l})
}

func TestBodyAboveTheByteBudgetIsNotSent(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	url := serve(t, "https", "a.example.com", func(http.ResponseWriter, *http.Request) { served.Add(1) })
	b := broker(t, func(c *egress.Config) { c.Policy.BytesPerMinute = 1000 })
	_ = refused(t, b, egress.Request{Method: "POST", URL: url, Body: make([]byte, 1000)}, egress.ReasonBytes)
	if s := b.Stats(); served.Load() != 0 || s.Connections != 0 || s.BytesOut != 0 {
		t.Errorf("served %d, stats %+v", served.Load(), s)
	}
}

func TestHeadersAboveTheByteBudgetAreNotSent(t *testing.T) {
	t.Parallel()
	var served atomic.Int64
	url := serve(t, "https", "a.example.com", func(http.ResponseWriter, *http.Request) { served.Add(1) })
	b := broker(t, func(c *egress.Config) { c.Policy.BytesPerMinute = 500 })
	_ = refused(t, b, egress.Request{URL: url, Header: http.Header{"X-A": {strings.Repeat("a", 600)}}}, egress.ReasonBytes)
	if s := b.Stats(); served.Load() != 0 || s.BytesOut > 500 {
		t.Errorf("served %d, stats %+v", served.Load(), s)
	}
}

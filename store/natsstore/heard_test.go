package natsstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// heard is what all workers have said.
type heard struct {
	t  *testing.T
	mu sync.Mutex

	submitted []string
	by        [nodes]int
	began     map[string]int
	refused   int
	last      time.Time
	stall     time.Duration
}

// from takes what the worker of a node says.
func (h *heard) from(node int) func(line string) {
	return func(line string) {
		if strings.HasPrefix(line, "submitted ") {
			h.mu.Lock()
			h.by[node]++
			h.mu.Unlock()
		}
		h.line(line)
	}
}

// count is how many submits were acknowledged to a worker.
func (h *heard) count(node int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.by[node]
}

// all is how many were acknowledged.
func (h *heard) all() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.submitted)
}

func (h *heard) line(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "submitted":
		h.submitted = append(h.submitted, rest)
		now := time.Now()
		h.stall, h.last = max(h.stall, now.Sub(h.last)), now
	case "refused":
		h.refused++
	case "began":
		h.began[rest]++
		if h.began[rest] > 1 {
			h.t.Errorf("the claim %q was carried out twice", rest)
		}
	}
}

// goesOn waits for some more acknowledged submits.
func (h *heard) goesOn(submits int) {
	h.t.Helper()
	h.awaits(submits, h.all)
}

// comesBack waits until one is acknowledged to the worker of a node.
func (h *heard) comesBack(node int) {
	h.t.Helper()
	h.awaits(1, func() int { return h.count(node) })
}

func (h *heard) awaits(more int, count func() int) {
	h.t.Helper()
	for before, start := count(), time.Now(); count() < before+more; {
		if time.Since(start) > time.Minute {
			h.t.Fatal("no submit is acknowledged")
		}
		<-time.After(20 * time.Millisecond)
	}
}

// gap returns the longest time without an acknowledged submit since it was asked last.
func (h *heard) gap() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	longest := max(h.stall, time.Since(h.last))
	h.stall, h.last = 0, time.Now()
	return longest
}

// drain lets a last mailbox finish what is left, and checks.
func drain(t *testing.T, store mailbox.Store, said *heard) (found, again int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	box, err := mailbox.New(ctx, workConfig(store, func(format string, args ...any) { said.line(fmt.Sprintf(format, args...)) }))
	if err == nil {
		err = box.Start(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	for live := []mailbox.Status{mailbox.Queued, mailbox.Claimed}; ; {
		list, err := store.Dispatches(ctx, mailbox.DispatchQuery{Statuses: live, Limit: 1})
		if err != nil {
			t.Fatalf("what is left did not end: %v", err)
		}
		if len(list) == 0 {
			break
		}
		<-time.After(100 * time.Millisecond)
	}
	if err := box.Close(ctx); err != nil {
		t.Error(err)
	}
	return checkDispatches(ctx, t, store, said), checkLogs(ctx, t, store)
}

// checkDispatches checks that what was acknowledged is there and that all has ended.
func checkDispatches(ctx context.Context, t *testing.T, store mailbox.Store, said *heard) int {
	t.Helper()
	list, err := store.Dispatches(ctx, mailbox.DispatchQuery{Limit: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for i := range list {
		d := &list[i]
		if !strings.HasPrefix(d.Thread, "t") {
			continue
		}
		there[d.ID] = true
		s, err := store.Load(ctx, d.Thread, mailbox.Need{Runs: []string{d.RunID}})
		if err != nil {
			t.Fatal(err)
		}
		if run := s.Runs[d.RunID]; d.Status != mailbox.Acked || run.Status != mailbox.RunDone || run.Termination != "natural" {
			t.Errorf("dispatch %q is %s (%s), its run is %s, %s", d.ID, d.Status, d.LastError, run.Status, run.Termination)
		}
	}
	said.mu.Lock()
	defer said.mu.Unlock()
	if len(said.submitted) == 0 {
		t.Error("nothing was submitted")
	}
	for _, id := range said.submitted {
		if !there[id] {
			t.Errorf("dispatch %q was acknowledged and is lost", id)
		}
	}
	return len(there)
}

// checkLogs checks that nobody wrote to a thread after its next claim, and that what was finished was not begun again.
func checkLogs(ctx context.Context, t *testing.T, store mailbox.Store) (again int) {
	t.Helper()
	for n := range workThreads {
		thread := fmt.Sprint("t", n)
		log, err := store.Messages(ctx, thread, 1, 1_000_000)
		if err != nil {
			t.Fatal(err)
		}
		last, steps := 0, 0
		begun, finished := map[string]bool{}, map[string]bool{}
		for _, m := range log {
			var id string
			var fence, step int
			if _, err := fmt.Sscanf(m.ID, "%s %d %d", &id, &fence, &step); err != nil {
				t.Fatalf("message %q: %v", m.ID, err)
			}
			if fence > last {
				if steps = 0; begun[id] {
					again++
				}
			}
			if fence < last || step != steps || finished[id] {
				t.Errorf("thread %s: message %d is %q, after claim %d and %d steps; finished: %v", thread, m.Seq, m.ID, last, steps, finished[id])
			}
			last, steps = fence, steps+1
			begun[id], finished[id] = true, step == workSteps-1
		}
		for id := range begun {
			if !finished[id] {
				t.Errorf("thread %s: %q was begun and never finished", thread, id)
			}
		}
	}
	return again
}

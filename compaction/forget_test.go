package compaction_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"weak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// TestCompactor_forgets: the logs of threads that are idle do not stay in memory, while what matters of a thread
// does: its summary, the compaction that it has under way, and a request for one.
func TestCompactor_forgets(t *testing.T) {
	t.Parallel()
	d := newDesk()
	c := d.at(t, says("SUMMARY"), func(cfg *compaction.Config) { cfg.Policy.ThresholdTokens = 50_000 })
	log := filler()
	c.Request(thread, "")
	c.Consider(t.Context(), thread, log)
	consume(t, c, log, d.run())
	c.Request("pending", "")
	c.Consider(t.Context(), "pending", log)
	c.Request("requested", "")
	var logs []weak.Pointer[abi.Message]
	for i := range 600 {
		l := []abi.Message{user("u", fmt.Sprintf("thread %d", i))}
		c.View(fmt.Sprint(i), l)
		logs = append(logs, weak.Make(&l[0]))
	}
	runtime.GC()
	alive := 0
	for _, p := range logs {
		if p.Value() != nil {
			alive++
		}
	}
	if alive == 0 || alive > 150 {
		t.Errorf("%d of %d logs are in memory", alive, len(logs))
	}
	if view := c.View(thread, log); len(view) != 2 {
		t.Errorf("the view is %v", ids(view))
	}
	if !c.Pending("pending") {
		t.Errorf("the compaction under way was forgotten: %v", d.kinds())
	}
	for _, n := range d.run() {
		c.Consume("pending", log, n)
	}
	if c.Total("pending") != 1 {
		t.Errorf("the compaction under way did not land: %v", d.kinds())
	}
	if !c.Consider(t.Context(), "requested", log) {
		t.Errorf("the request was forgotten: %v", d.last(t))
	}
}

// TestCompactor_forgetsConcurrently: threads that are forgotten and used at once have one state each.
func TestCompactor_forgetsConcurrently(t *testing.T) {
	t.Parallel()
	d := newDesk()
	c := d.at(t, says("SUMMARY"), nil)
	log := filler()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 500 {
				c.Consider(t.Context(), fmt.Sprint(i%200), log)
				c.View(fmt.Sprint(i%200), log)
			}
		})
	}
	wg.Wait()
	if n := d.started(); n < 4 || n > 200 {
		t.Errorf("%d compactions were started in 200 threads, of which 4 may have one at once", n)
	}
}

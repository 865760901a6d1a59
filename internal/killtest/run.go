package killtest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// How many children there are at a time, how many are killed, and when a test is content with fewer because
// the machine is slow. It says so then.
const (
	AtOnce   = 2
	lives    = 15 // of each slot
	few      = 4
	patience = 15 * time.Second
)

// most is how many lines a child says at most before it is killed.
const most = 80

// Run starts children of a kind on what has this name and kills them at random moments. After each it
// calls check with all that the child has said: that much was done.
func Run(t *testing.T, kind, name string, check func(l Life, said []string)) {
	t.Helper()
	var wg sync.WaitGroup
	begin := time.Now()
	killed, lines := make([]int, AtOnce), make([]int, AtOnce)
	for slot := range AtOnce {
		wg.Go(func() {
			for number := range lives {
				if t.Failed() || number >= few && time.Since(begin) > patience {
					return
				}
				l := Life{Name: name, Slot: slot, Number: number}
				after := rand.IntN(most) //nolint:gosec // not a secret
				said := live(t, kind, l, func(said []string) bool { return len(said) == after })
				killed[slot]++
				lines[slot] += len(said)
				check(l, said)
			}
		})
	}
	wg.Wait()
	t.Logf("killed %v of %d processes each in %v; they had said %v things", killed, lives, time.Since(begin).Round(time.Millisecond), lines)
	for slot, n := range lines {
		if n == 0 && !t.Failed() {
			t.Errorf("no child of slot %d did anything", slot)
		}
	}
}

// Once starts one child of a kind on what has this name, kills it when it prints that line, and returns what
// it had said.
func Once(t *testing.T, kind, name, line string) []string {
	t.Helper()
	return live(t, kind, Life{Name: name}, func(said []string) bool { return slices.Contains(said, line) })
}

// live is one child, from its start to its end, when it has printed what is due.
func live(t *testing.T, kind string, l Life, due func(said []string) bool) (said []string) {
	t.Helper()
	p := Start(t, kind, l)
	if p == nil {
		return nil
	}
	kill := func() {
		if due(said) {
			p.Kill()
		}
	}
	kill()
	for line := range p.Said() {
		said = append(said, line)
		kill()
	}
	return said
}

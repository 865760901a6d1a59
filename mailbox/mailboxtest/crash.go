package mailboxtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/store"
)

// OpenFunc opens the store of a name, such as a path or a URL. The name is the same in all
// processes that share the store.
type OpenFunc func(ctx context.Context, name string) (s store.Store, closeStore func(context.Context) error, err error)

// How often a child is killed, how many live at once, and when the test is content with fewer
// because the machine is slow, and logs that. What the dead have left may take as long as it takes, if it does not stand still for
// crashStill.
const (
	crashRounds  = 200
	crashAtOnce  = 2
	crashFew     = 40
	crashPatient = 90 * time.Second
	crashStill   = 2 * time.Minute
)

// TestCrash kills processes that submit, claim, run and acknowledge on one store, at random moments and
// 200 times, and compares what they acknowledged with what the store has in the end: no acknowledged request is lost, no
// claim is given twice, no process writes to a thread after its next claim, no thread has two claims, what was done is not done
// again, and every run ends. Some are stopped for longer than a lease first, and continue as if they had their
// claims. The children are the test binary itself: its TestMain calls [CrashChild]
// first. With -short it kills 40.
func TestCrash(t *testing.T, open OpenFunc, name string) {
	t.Helper()
	TestCrashFor(t, open, name, crashPatient)
}

// TestCrashFor is [TestCrash] for stores that are slower to open: after patience it is content with the 40 that -short
// kills.
func TestCrashFor(t *testing.T, open OpenFunc, name string, patience time.Duration) {
	t.Helper()
	rounds := crashRounds
	if testing.Short() {
		rounds = crashFew
	}
	said := &saidLog{t: t}
	var mu sync.Mutex
	lives, start := 0, time.Now()
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		if lives >= rounds || (lives >= crashFew && time.Since(start) > patience) || t.Failed() {
			return false
		}
		lives++
		return true
	}
	var wg sync.WaitGroup
	for range crashAtOnce {
		wg.Go(func() {
			for next() {
				said.life(name)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	c := &crashCheck{t: t, said: said}
	c.drain(open, name)
	t.Logf("killed %d processes of %d in %v: %d requests acknowledged, %d found, %d executions, %d of them again after a kill",
		lives, rounds, time.Since(start).Round(time.Millisecond), len(said.submitted), c.found, len(said.began), c.repeated)
}

// saidLog is what all children have printed.
type saidLog struct {
	t  *testing.T
	mu sync.Mutex
	// submitted are dispatches, began the claims "thread fence" that were executed.
	submitted []string
	began     map[string]int
}

// life starts a child and kills it after a random while, counted from its first work, and sometimes before that.
func (s *saidLog) life(name string) {
	p := killtest.Start(s.t, crashKind, killtest.Life{Name: name})
	if p == nil {
		return
	}
	after := time.Duration(rand.IntN(40_000)) * time.Microsecond //nolint:gosec // not a secret
	works := sync.OnceFunc(func() { time.AfterFunc(after, func() { s.end(p) }) })
	if rand.IntN(8) == 0 { //nolint:gosec // not a secret
		after *= 4 // while it starts
		works()
	}
	for line := range p.Said() {
		if line != "open" {
			works()
		}
		s.note(line)
	}
}

// end kills a child. One in twenty is stopped first, until others have what it held, and has a
// moment to continue.
func (s *saidLog) end(p *killtest.Process) {
	if rand.IntN(20) == 0 { //nolint:gosec // not a secret
		err := freeze(p.Process)
		<-time.After(crashLease + crashLease/4)
		if err = errors.Join(err, thaw(p.Process)); err != nil {
			s.t.Errorf("stop a child: %v", err)
		}
		<-time.After(10 * time.Millisecond)
	}
	p.Kill()
}

// note keeps a line of a child.
func (s *saidLog) note(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began == nil {
		s.began = map[string]int{}
	}
	what, rest, _ := strings.Cut(line, " ")
	switch what {
	case "submitted":
		s.submitted = append(s.submitted, rest)
	case "began":
		s.began[rest]++
		if s.began[rest] > 1 {
			s.t.Errorf("the claim %q was executed %d times", rest, s.began[rest])
		}
	case "wrong":
		s.t.Errorf("a child printed: %s", rest)
	}
}

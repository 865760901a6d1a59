package host

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
)

// overruns counts the late host calls of a module. It is safe for concurrent use.
type overruns struct {
	mu     sync.Mutex
	count  int64
	time   time.Duration
	byName map[string]int64
}

// add counts one.
func (o *overruns) add(late engine.Overrun) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.byName == nil {
		o.byName = map[string]int64{}
	}
	o.count, o.time = o.count+1, o.time+late.By
	o.byName[late.Name]++
}

func (o *overruns) stats(s *Stats) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Late, s.LateTime, s.LateImports = o.count, o.time, maps.Clone(o.byName)
}

// lateWindow is the time in which [Limits].LateTime bounds the lateness of a generation. It
// begins anew, so that a busy machine does not close a module that was loaded months ago.
const lateWindow = time.Hour

// lateness is how late host calls came back within a window. It is safe for concurrent use.
type lateness struct {
	mu    sync.Mutex
	since time.Time
	sum   time.Duration
}

func (l *lateness) add(by time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.since) > lateWindow {
		l.since, l.sum = now, 0
	}
	l.sum += by
}

func (l *lateness) total() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sum
}

// overrun closes the module when the generation's late host calls took more time than they may.
func (g *Generation) overrun(ctx context.Context) {
	if took := g.late.total(); took > g.limits.LateTime {
		g.module.shut(ctx, fmt.Errorf("%w: within an hour its host calls continued for %v after their calls were out of time or cancelled, and %v are allowed; see Stats.LateImports for which, or raise Limits.LateTime",
			ErrClosed, took.Round(time.Millisecond), g.limits.LateTime))
	}
}

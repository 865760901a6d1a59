package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Duplicates of an event are answered alike for this long, and have no effect.
const (
	onceFor = 60 * time.Second
	// onceAgain is for events that may come again as they are, such as the end of an answer that a model repeats. Two scopes send
	// theirs at once.
	onceAgain = time.Second
	onceMax   = 1024
)

// once answers an event that comes twice, as from two scopes of settings, from one execution.
type once struct {
	now func() time.Time

	mu   sync.Mutex
	done map[string]*execution
}

// execution is the handling of one event. Ended is closed when out and err are set.
type execution struct {
	ended chan struct{}
	until time.Time // zero as long as it is handled
	out   string
	err   error
}

func (o *once) init(now func() time.Time) { o.now, o.done = now, map[string]*execution{} }

// do calls fn, or returns what the first call for the key returned, for as long as it counts after its end. Fn reports whether its
// output may be kept.
func (o *once) do(ctx context.Context, key string, counts time.Duration, fn func() (out string, keep bool, err error)) (out string, shared bool, err error) {
	o.mu.Lock()
	x, there := o.done[key]
	if there && o.fresh(x) {
		o.mu.Unlock()
		select {
		case <-x.ended:
			return x.out, true, x.err
		case <-ctx.Done():
			return "", true, fmt.Errorf("hook: waiting for the same event: %w", ctx.Err())
		}
	}
	x = &execution{ended: make(chan struct{})}
	o.sweep()
	o.done[key] = x
	o.mu.Unlock()

	var keep bool
	x.out, keep, x.err = fn()
	o.mu.Lock()
	x.until = o.now().Add(counts)
	if !keep {
		delete(o.done, key)
	}
	o.mu.Unlock()
	close(x.ended)
	return x.out, false, x.err
}

// fresh reports whether an execution still counts. O.mu is held.
func (o *once) fresh(x *execution) bool { return x.until.IsZero() || o.now().Before(x.until) }

// sweep forgets what is old. O.mu is held.
func (o *once) sweep() {
	if len(o.done) < onceMax {
		return
	}
	for key, x := range o.done {
		if !x.until.IsZero() && (!o.fresh(x) || len(o.done) >= 2*onceMax) {
			delete(o.done, key)
		}
	}
}

// onceKey is the same for events that are one. An event that the agent gives no id may well come twice.
func onceKey(e *Event, stdin []byte) string {
	if e.CallID == "" && e.PromptID == "" {
		return ""
	}
	sum := sha256.Sum256(stdin)
	return fmt.Sprintf("%s %s %q %q %x", laneKey(e), e.Spec.Name, e.CallID, e.PromptID, sum)
}

// waits reports whether an output asks a person; the same event may come again when that has decided.
func waits(out string) bool {
	return strings.Contains(out, `"permissionDecision":"defer"`) || strings.Contains(out, `"permissionDecision":"ask"`) ||
		strings.Contains(out, "mortise hook approve")
}

// digest is how a record names what it does not keep.
func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

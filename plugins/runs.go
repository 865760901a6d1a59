package plugins

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
)

// maxIdle is how long an instance stays open for a run that calls it no more: it may be suspended, or have ended elsewhere.
const maxIdle = 5 * time.Minute

// runs are the instances of a plugin that has one for each run. A call that gets none is made on any instance
// of the module. The zero runs of a module have none yet.
type runs struct {
	module *host.Module

	mu     sync.Mutex
	byRun  map[runKey]*instance
	closed bool
}

// runKey is a run. Its thread is a part of it, so that a run of another thread under the same id has an instance of its own.
type runKey struct{ thread, run string }

// instance is that of a run. What changes is guarded by runs.
type instance struct {
	session *host.Session
	key     runKey
	// end ends the session. Nothing runs on it then, so it does not wait, and the error of the engine helps no caller.
	end func()
	// calls is how many are under way, used when the last of them ended.
	calls int
	used  time.Time
	// gone means that no further call will be made on it.
	gone bool
	idle *time.Timer
}

// open returns the instance of a run, for a call that ends with done, or nil: then the call is made on any instance.
func (r *runs) open(ctx context.Context, e *guest.Edition, run *abi.RunIdentity) *instance {
	if !e.Sticky || run.RunID == "" {
		return nil
	}
	return r.take(ctx, runKey{run.ThreadID, run.RunID}, e.Generation)
}

// done ends a call with its error. An instance that is broken, or in the middle of the call, is closed.
func (r *runs) done(i *instance, err error) {
	_, broke := errors.AsType[*host.TrapError](err)
	lost := errors.Is(err, host.ErrSessionLost) || errors.Is(err, host.ErrClosed)
	r.give(i, broke || lost || errors.Is(err, errUnfinished))
}

// take finds the instance of a run on a generation, or makes it. It returns nil if the module allows no further one.
func (r *runs) take(ctx context.Context, key runKey, gen *host.Generation) *instance {
	if i := r.known(key, gen); i != nil {
		return i
	}
	s, err := r.module.Session(ctx)
	if errors.Is(err, host.ErrLimit) && r.evict() {
		s, err = r.module.Session(ctx)
	}
	if err != nil {
		return nil
	}
	lasting := context.WithoutCancel(ctx)
	end := func() { _ = s.Close(lasting) }
	if i := r.adopt(s, end, key, gen); i != nil {
		return i
	}
	end() // it was not used
	return r.known(key, gen)
}

// known returns the instance that there is. One of another generation goes.
func (r *runs) known(key runKey, gen *host.Generation) *instance {
	r.mu.Lock()
	i := r.byRun[key]
	if i == nil || i.session.Generation() == gen {
		if i != nil {
			i.calls++
		}
		r.mu.Unlock()
		return i
	}
	over := r.drop(i)
	r.mu.Unlock()
	over.close()
	return nil
}

// adopt takes a new session for a run, unless there is another one by now, or it is of another generation.
func (r *runs) adopt(s *host.Session, end func(), key runKey, gen *host.Generation) *instance {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || s.Generation() != gen || r.byRun[key] != nil {
		return nil
	}
	if r.byRun == nil {
		r.byRun = map[runKey]*instance{}
	}
	i := &instance{session: s, end: end, key: key, calls: 1}
	i.idle = time.AfterFunc(maxIdle, func() { r.expire(i) })
	r.byRun[key] = i
	return i
}

// give ends a call. One that is broken goes.
func (r *runs) give(i *instance, broken bool) {
	r.mu.Lock()
	i.calls--
	i.used = time.Now()
	if !broken && !i.gone {
		i.idle.Reset(maxIdle)
		r.mu.Unlock()
		return
	}
	over := r.drop(i)
	r.mu.Unlock()
	over.close()
}

// expire drops an instance that was not used for long.
func (r *runs) expire(i *instance) {
	r.mu.Lock()
	var over *instance
	if i.calls == 0 && time.Since(i.used) >= maxIdle {
		over = r.drop(i)
	}
	r.mu.Unlock()
	over.close()
}

// evict drops the instance that was not used for longest, if one is idle.
func (r *runs) evict() bool {
	r.mu.Lock()
	var oldest *instance
	for _, i := range r.byRun {
		if i.calls == 0 && (oldest == nil || i.used.Before(oldest.used)) {
			oldest = i
		}
	}
	if oldest != nil {
		oldest = r.drop(oldest)
	}
	r.mu.Unlock()
	oldest.close()
	return oldest != nil
}

// end drops the instance of a run.
func (r *runs) end(run *abi.RunIdentity) {
	r.mu.Lock()
	i := r.byRun[runKey{run.ThreadID, run.RunID}]
	if i != nil {
		i = r.drop(i)
	}
	r.mu.Unlock()
	i.close()
}

// close drops all.
func (r *runs) close() {
	r.mu.Lock()
	r.closed = true
	var over []*instance
	for _, i := range r.byRun {
		over = append(over, r.drop(i))
	}
	r.mu.Unlock()
	for _, i := range over {
		i.close()
	}
}

// drop takes an instance out. It returns the instance when it is to be closed, and nil while a call is under way: the last one
// closes it. The lock is held, and is not for closing, which gives memory back.
func (r *runs) drop(i *instance) *instance {
	i.gone = true
	if r.byRun[i.key] == i {
		delete(r.byRun, i.key)
	}
	if i.calls > 0 {
		return nil
	}
	i.idle.Stop()
	return i
}

// close ends the session. A nil instance has none.
func (i *instance) close() {
	if i != nil {
		i.end()
	}
}

package guest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
)

// keptEditions is how many editions are remembered: the one in use, the one that it
// may be rolled back to, and those on their way in or out.
const keptEditions = 4

// Live is the guest of a module that may be swapped while it is in use. A call goes to
// the generation that its guest was opened on, so that its version and encoding are
// always those of the binary that answers. It is safe for concurrent use. The module
// belongs to the caller that loaded it.
type Live struct {
	module *host.Module
	admit  func(context.Context, *Guest) error
	// current is the last edition that took a call.
	current atomic.Pointer[Edition]

	mu    sync.Mutex
	known []*Edition
}

// Edition is a guest with the generation that it runs on. It does not change.
type Edition struct {
	Guest      *Guest
	Generation *host.Generation
	Access     Access
	// Sticky reports that the guest asks for one instance for each run, and may have it.
	Sticky bool
}

// NewLive opens the guest on the module's current generation. grants are those that the module
// was loaded with; admit reports why a guest cannot serve, now and at each swap.
func NewLive(ctx context.Context, m *host.Module, grants host.Grants, admit func(context.Context, *Guest) error) (*Live, error) {
	l := &Live{module: m, admit: admit}
	e, err := l.open(ctx, m.Current(), &grants)
	if err != nil {
		return nil, err
	}
	l.keep(e)
	l.current.Store(e)
	return l, nil
}

// open makes an edition. Nil grants are unknown ones.
func (l *Live) open(ctx context.Context, gen *host.Generation, grants *host.Grants) (*Edition, error) {
	g, err := Open(ctx, gen)
	if err != nil {
		return nil, err
	}
	e := &Edition{Guest: g, Generation: gen}
	if grants == nil {
		e.Access.note("was swapped past its owner, so what it is granted is not known here")
	} else if e.Access, err = g.CheckGrants(*grants); err != nil {
		return nil, err
	}
	e.Sticky = g.asks(abi.CapabilitySticky) && (grants == nil || grants.Sticky)
	return e, l.admit(ctx, g)
}

// Edition returns the guest that takes the calls now, as far as it was opened.
func (l *Live) Edition() *Edition {
	if e := l.find(l.module.Current()); e != nil {
		return e
	}
	return l.current.Load()
}

// NotBegun reports whether a call did not begin: a swap had retired its generation, or the call before had broken its
// session. The caller makes it again, on what [Live.Current] returns then, with an input encoded for that guest. A guest
// that broke has begun, whatever the cause was.
func NotBegun(err error) bool {
	if !errors.Is(err, host.ErrRetired) && !errors.Is(err, host.ErrSessionLost) {
		return false
	}
	_, broke := errors.AsType[*host.TrapError](err)
	return !broke
}

// Current returns the guest that takes the calls now. It opens the guest when the module was
// swapped in another way than by Swap.
func (l *Live) Current(ctx context.Context) (*Edition, error) {
	gen := l.module.Current()
	if e := l.current.Load(); e.Generation == gen {
		return e, nil
	}
	e := l.find(gen)
	if e == nil {
		var err error
		if e, err = l.open(ctx, gen, nil); err != nil {
			return nil, err
		}
		l.keep(e)
	}
	l.current.Store(e)
	return e, nil
}

// Swap replaces the binary, or the spec, of the module, if its guest can
// serve as the one before did. See host.Module.Swap, which this wraps: opts.Check is
// asked last.
func (l *Live) Swap(ctx context.Context, spec host.Spec, opts host.SwapOptions) error {
	also := opts.Check
	opts.Check = func(ctx context.Context, gen *host.Generation) error {
		grants := gen.Spec().Grants // a spec of a binary alone keeps those in use
		e, err := l.open(ctx, gen, &grants)
		if err != nil {
			return err
		}
		if also != nil {
			if err := also(ctx, gen); err != nil {
				return err
			}
		}
		l.keep(e)
		return nil
	}
	_, err := l.module.Swap(ctx, spec, opts)
	return err
}

func (l *Live) find(gen *host.Generation) *Edition {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.known {
		if e.Generation == gen {
			return e
		}
	}
	return nil
}

// keep remembers an edition in the place of the oldest one that takes no calls.
func (l *Live) keep(e *Edition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known = append(l.known, e)
	for i := 0; len(l.known) > keptEditions; {
		if l.known[i].Generation == l.module.Current() {
			i++
			continue
		}
		l.known = append(l.known[:i:i], l.known[i+1:]...)
	}
}

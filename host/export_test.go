package host

import "context"

// UsePortableMemory makes guests that h loads from now on use the portable memory.
// It reports whether the engine has one.
func UsePortableMemory(h *Host) bool {
	e, ok := h.engine.(*nativeEngine)
	if ok {
		e.memory = memoryCopied
	}
	return ok
}

// DoNotFollow makes small guests that h loads from now on be put back as large ones are, whose
// writes are not followed; AlwaysFollow follows those of long calls too.
func DoNotFollow(h *Host) {
	if e, ok := h.engine.(*nativeEngine); ok {
		e.unfollowed = true
	}
}

func AlwaysFollow(h *Host) {
	if e, ok := h.engine.(*nativeEngine); ok {
		e.eager = true
	}
}

// VerifyResets makes each instance that is put back compare all of its memory with what
// it should be, and panic where they differ.
func VerifyResets() { verifyResets = true }

// idleInstance is the first instance of m that is not in a call, nil without one.
func idleInstance(m *Module) *nativeInstance {
	m.Stats() // puts the instance where it can be found
	p := m.Current().pool
	p.mu.Lock()
	defer p.mu.Unlock()
	for n := range p.slots {
		if i, ok := p.slots[n].inst.(*nativeInstance); ok {
			return i
		}
	}
	return nil
}

// Followed tells whether the idle instance of m is one whose writes can be followed.
func Followed(m *Module) bool {
	i := idleInstance(m)
	return i != nil && i.code == i.prog.followed
}

// Following tells whether the writes of the idle instance of m are followed, how many calls in a row had none
// outside of the windows, and how large these are in bytes.
func Following(m *Module) (on bool, served, size int) {
	i := idleInstance(m)
	if i == nil {
		return false, 0, 0
	}
	return i.windows.on, i.windows.served, i.windows.size()
}

// Windows are where the windows of the idle instance of m begin and end.
func Windows(m *Module) (at [2][2]int) {
	if i := idleInstance(m); i != nil {
		for k, s := range i.windows.at {
			at[k] = [2]int{s.from, s.to}
		}
	}
	return at
}

// MakeInstance makes one more instance of m, outside of its pool.
func MakeInstance(ctx context.Context, m *Module) (*Instance, error) {
	i, err := m.Current().prog.instantiate(ctx, false)
	return &Instance{i}, err
}

// Instance is one that MakeInstance made.
type Instance struct{ i instance }

// Close closes it.
func (i *Instance) Close(ctx context.Context) error { return i.i.close(ctx) }

// NewGate makes a gate for a test, which enters and leaves it.
func NewGate() (enter func(context.Context) error, leave func()) {
	g := newGate()
	return g.enter, g.leave
}

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

// MakeInstance makes one more instance of m, outside of its pool.
func MakeInstance(ctx context.Context, m *Module) (*Instance, error) {
	i, err := m.Current().prog.instantiate(ctx)
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

package host

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/engine"
)

// errCallerDone means a Caller that was kept.
var errCallerDone = errors.New("host: the function has returned; its Caller is of no use any more")

// Caller is the guest that called a [Function]. It checks everything that the
// guest gave, and what it moves costs the guest fuel: when that is used up, or the
// call is out of time, the function is left by a panic, which it must let pass. It
// belongs to the goroutine of the call, and not to be used after Call has returned.
type Caller struct {
	guest engine.Guest
	name  string
	// stopped is the panic that ended the guest.
	stopped any
}

// Read returns a copy of the block at an offset, as the guest's PDK made it. The
// offset 0 is no block and gives no bytes.
func (c *Caller) Read(offset uint64) ([]byte, error) {
	if c.guest == nil {
		return nil, errCallerDone
	}
	if offset == 0 || offset == engine.EmptyBlock {
		return []byte{}, nil
	}
	b, err := c.try(func() []byte { return c.guest.Block(c.name, offset) })
	return append([]byte{}, b...), err
}

// Write puts bytes into a new block, which the guest reads and frees, and returns
// its offset. Without bytes it returns 0.
func (c *Caller) Write(data []byte) (uint64, error) {
	if c.guest == nil {
		return 0, errCallerDone
	}
	if len(data) == 0 {
		return 0, nil
	}
	var offset uint64
	_, err := c.try(func() []byte {
		offset = c.guest.Store(c.name, data)
		return nil
	})
	return offset, err
}

// ReadMemory returns a copy of n bytes of the guest's own memory.
func (c *Caller) ReadMemory(ptr, n uint32) ([]byte, error) {
	b, err := c.memory(ptr, uint64(n))
	return append([]byte{}, b...), err
}

// WriteMemory copies bytes into the guest's own memory.
func (c *Caller) WriteMemory(ptr uint32, data []byte) error {
	b, err := c.memory(ptr, uint64(len(data)))
	copy(b, data)
	return err
}

// memory checks a range before it counts for anything.
func (c *Caller) memory(ptr uint32, n uint64) ([]byte, error) {
	if c.guest == nil {
		return nil, errCallerDone
	}
	if n > engine.MaxMemoryPages<<16 {
		return nil, fmt.Errorf("host: %s: %d bytes are more than a memory has", c.name, n)
	}
	return c.try(func() []byte {
		b := c.guest.Slice(c.name, ptr, int(n)) // at most 4 GiB
		c.guest.Spend(len(b)/64 + 1)
		return b
	})
}

// try runs what may end the guest because of what it gave, and makes that an
// error. What ends it for other reasons continues as a panic.
func (c *Caller) try(run func() []byte) (b []byte, err error) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if f, ok := r.(*engine.Fault); ok && (f.Kind == TrapFault || f.Kind == TrapMemory) {
			c.guest.Forgive()
			err = fmt.Errorf("host: %s", f.Detail)
			return
		}
		c.stopped = r
		panic(r)
	}()
	return run(), nil
}

// guard runs the embedder's code. A panic of its own is an error; one that ended
// the guest continues, even when the code swallowed it.
func (c *Caller) guard(run func() error) (err error) {
	defer func() {
		r := recover()
		switch {
		case c.stopped != nil:
			panic(c.stopped)
		case r != nil:
			err = fmt.Errorf("%w: panicked: %s", ErrEngine, engine.Clean(fmt.Sprint(r), engine.MaxDetail))
		}
	}()
	return run()
}

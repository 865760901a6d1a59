package native

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/engine"
)

// template is the state of a guest right after its initialisation.
type template struct {
	size    int
	globals []uint64
	image   image
}

// image is the memory of a template.
type image interface {
	// bytes are what it consists of. They never change.
	bytes() []byte
	close()
}

// guestMemory is the linear memory of a guest, which can be reset to a template.
type guestMemory interface {
	experimental.LinearMemory

	bytes() []byte
	// touched are the bytes that may differ from the image and the zeros behind it: all that
	// the memory had when it was larger.
	touched() []byte
	// shrink makes the next Reallocate return a memory of that size, whatever it is asked for.
	shrink(size int)
	// maxGrowth is how many bytes a call may add to the memory and have them given back.
	maxGrowth() int
	// capture takes the memory as it is.
	capture() (image, error)
	// adopt makes the memory, which is as large as the image, equal to it.
	adopt(img image) error
	// begin comes before a call, and reset after it, on the same thread: it makes
	// the memory, which is as large as the image, equal to it again, and zero behind it.
	begin()
	reset(img image) bool
	// distrust is called when code that is not ours may write to the memory.
	distrust()
}

// nativeMemories makes the memories of an instance: first the kernel's, then the
// guest's.
type nativeMemories struct {
	kernel kernelMemory
	guest  guestMemories
	// links are those of the linked modules, without a memory where one has none.
	links []*guestMemories
	// next is for the module that is made now, nil for the kernel.
	next *guestMemories
}

// MemoryKind describes how a guest's memory is reset after a call.
type MemoryKind int

// Kinds of memory, the best one first.
const (
	// MemoryMapped is a mapping of which the pages are reset that a call has changed. Where the system has none it is MemoryCopied.
	MemoryMapped MemoryKind = iota
	// MemoryBlind is a mapping whose pages are dropped after each call, as where the
	// kernel does not report which they are.
	MemoryBlind
	// MemoryCopied is copied as a whole.
	MemoryCopied
)

// guestMemories is the guest's memory, if it has one.
type guestMemories struct {
	memory guestMemory
	kind   MemoryKind
	// fixed reports that the memory must not move: it is shared.
	fixed bool
}

// Allocate implements experimental.MemoryAllocator.
func (m *nativeMemories) Allocate(_, limit uint64) experimental.LinearMemory {
	if m.next == nil {
		memory := newGuestMemory(limit, m.guest.kind)
		m.kernel.memory = memory
		return &m.kernel
	}
	memory := newGuestMemory(limit, m.next.kind)
	if c, ok := memory.(*copyMemory); ok && m.next.fixed {
		c.Buf = make([]byte, 0, limit)
	}
	m.next.memory = memory
	return memory
}

// kernelMemory is the memory of a kernel. Its first page is mostly unused, so a
// mapping costs a tenth of a slice.
type kernelMemory struct {
	buf    []byte
	memory guestMemory
	freed  atomic.Bool
}

// Reallocate implements experimental.LinearMemory.
func (k *kernelMemory) Reallocate(size uint64) []byte {
	if c, ok := k.memory.(*copyMemory); ok {
		c.reserve(size)
	}
	grown := k.memory.Reallocate(size)
	if grown != nil {
		k.buf = grown
	}
	return grown
}

// Free implements experimental.LinearMemory. It works once, as that of each kind of memory
// does: the module that owns the memory, the instance and the runtime all call it.
func (k *kernelMemory) Free() {
	if k.freed.Swap(true) {
		return
	}
	k.buf = nil
	if k.memory != nil {
		k.memory.Free()
	}
}

func (k *kernelMemory) bytes() []byte { return k.buf }

func (m *nativeMemories) free() {
	m.kernel.Free()
	for _, g := range append(m.links, &m.guest) {
		if g.memory != nil {
			g.memory.Free()
		}
	}
}

// shrunk is a size that replaces the next one that a memory is asked for.
type shrunk struct {
	pending bool
	size    uint64
}

func (s *shrunk) set(size int) { *s = shrunk{true, uint64(size)} } //nolint:gosec // not negative

// or returns the pending size, or else the one asked for.
func (s *shrunk) or(asked uint64) uint64 {
	if s.pending {
		asked = s.size
	}
	s.pending = false
	return asked
}

func (g *guestMemories) bytes() []byte {
	if g.memory == nil {
		return nil
	}
	return g.memory.bytes()
}

func (g *guestMemories) reset(t *template) bool {
	if g.memory == nil {
		return true
	}
	return len(g.memory.bytes()) == t.size && g.memory.reset(t.image)
}

// templates holds the template of a program.
type templates struct {
	mu   sync.Mutex
	t    *template
	cold bool
}

func (t *templates) get() *template {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.t
}

// set keeps the first template; one that comes second is closed by its maker.
func (t *templates) set(made *template) *template {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.t == nil {
		t.t = made
		return made
	}
	if made.image != nil {
		made.image.close()
	}
	return t.t
}

func (t *templates) warm() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.cold
}

func (t *templates) skipWarm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.cold = true
}

func (t *templates) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.t != nil && t.t.image != nil {
		t.t.image.close()
	}
	t.t = nil
}

// capture takes the instance's state as a template.
func (i *nativeInstance) capture() (*template, error) {
	t := &template{size: len(i.memory())}
	for _, g := range i.globals {
		t.globals = append(t.globals, g.Get())
	}
	if i.mems.guest.memory == nil {
		return t, nil
	}
	var err error
	t.image, err = i.mems.guest.memory.capture()
	return t, err
}

// adopt puts the instance into the state of a template.
func (i *nativeInstance) adopt(t *template) error {
	i.adopted, i.renewable = t, !i.prog.stateful()
	for n, g := range i.globals {
		g.Set(t.globals[n])
	}
	if i.mems.guest.memory == nil {
		return nil
	}
	const page = 1 << 16
	if missing := t.size - len(i.memory()); missing > 0 {
		if _, ok := i.guest.Memory().Grow(uint32(missing / page)); !ok { // below 65536
			return fmt.Errorf("%w: no memory for an instance", engine.ErrEngine)
		}
	}
	return i.mems.guest.memory.adopt(t.image)
}

// shrink gives back the pages that the guest has added in the call, so that the next one finds a
// memory as large as the template again. wazero has no function for that, but takes the memory
// that Reallocate returns. It does not ask for one when the memory is as large as it may become.
func (i *nativeInstance) shrink() bool {
	g, size := &i.mems.guest, i.adopted.size
	switch grown := len(g.bytes()) - size; {
	case grown == 0:
		return true
	case grown < 0 || g.fixed || grown > g.memory.maxGrowth():
		return false
	}
	g.memory.shrink(size)
	_, ok := i.guest.Memory().Grow(1)
	return ok && len(g.bytes()) == size && int(i.guest.Memory().Size()) == size
}

// copyMemory is the portable guest memory: putting it back copies all of it.
type copyMemory struct {
	engine.LinearMemory

	shrunk shrunk
	// extent is the largest length since the memory was last reset.
	extent int
}

// Reallocate implements experimental.LinearMemory.
func (m *copyMemory) Reallocate(size uint64) []byte {
	buf := m.LinearMemory.Reallocate(m.shrunk.or(size))
	m.extent = max(m.extent, len(buf))
	return buf
}

func (m *copyMemory) shrink(size int) { m.shrunk.set(size) }

// maxGrowth implements guestMemory: a slice keeps what it has.
func (*copyMemory) maxGrowth() int { return 4 << 20 }

func (m *copyMemory) touched() []byte { return m.Buf[:m.extent] }

// reserve makes room in large steps. A guest makes its kernel grow with each alloc,
// and no fuel pays for the copying.
func (m *copyMemory) reserve(size uint64) {
	if size > uint64(cap(m.Buf)) && size <= m.Limit {
		grown := make([]byte, len(m.Buf), min(max(size, 4*uint64(cap(m.Buf))), m.Limit))
		copy(grown, m.Buf)
		m.Buf = grown
	}
}

func (m *copyMemory) begin() {}

func (m *copyMemory) distrust() {}

type copyImage struct{ data []byte }

func (*copyImage) close() {}

func (c *copyImage) bytes() []byte { return c.data }

func (m *copyMemory) capture() (image, error) {
	return &copyImage{data: append([]byte(nil), m.Buf...)}, nil
}

func (m *copyMemory) adopt(img image) error {
	if !m.reset(img) {
		return fmt.Errorf("%w: the template is of another kind", engine.ErrEngine)
	}
	return nil
}

func (m *copyMemory) reset(img image) bool {
	c, ok := img.(*copyImage)
	if !ok || copy(m.Buf, c.data) != len(m.Buf) {
		return false
	}
	clear(m.touched()[len(m.Buf):])
	m.extent = len(m.Buf)
	return true
}

func (m *copyMemory) bytes() []byte { return m.Buf }

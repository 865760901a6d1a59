package native

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/engine"
)

// newGuestMemory makes the memory of a guest: a private mapping that is reset
// by dropping the pages that changed, or the portable one where that cannot be
// had or is not wanted.
func newGuestMemory(limit uint64, kind MemoryKind) guestMemory {
	if kind != MemoryCopied {
		if m, err := newMapped(limit); err == nil {
			m.dirty.blind = kind == MemoryBlind
			return m
		}
	}
	return &copyMemory{LinearMemory: engine.LinearMemory{Limit: limit}}
}

// mappedMemory reserves the address range of a whole memory and maps the image
// of a template over its start.
type mappedMemory struct {
	// base is nil once the range was given back: by then it may be another memory's.
	base   atomic.Pointer[byte]
	limit  uint64
	length uint64
	shrunk shrunk
	// extent is the largest length since the pages were last dropped: behind it all are untouched.
	extent uint64
	dirty  dirtyPages
}

func newMapped(limit uint64) (*mappedMemory, error) {
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(limit), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	m := &mappedMemory{limit: limit}
	m.base.Store((*byte)(base))
	// With a huge page, a guest that touches one byte owns 2 MiB. Where there are none this fails.
	_ = unix.Madvise(m.upTo(limit), unix.MADV_NOHUGEPAGE)
	return m, nil
}

// Reallocate implements experimental.LinearMemory. The address never changes.
func (m *mappedMemory) Reallocate(size uint64) []byte {
	if m.base.Load() == nil || size > m.limit {
		return nil
	}
	size = m.shrunk.or(size)
	m.length, m.extent = size, max(m.extent, size)
	return m.bytes()
}

// maxGrowth implements guestMemory: pages of the process's own are dropped when they are many.
func (m *mappedMemory) maxGrowth() int { return 64 << 20 }

// Free implements experimental.LinearMemory. It works once, also when several goroutines
// call it: a second munmap would take the range from the memory that got it meanwhile.
func (m *mappedMemory) Free() {
	if base := m.base.Swap(nil); base != nil {
		m.length = 0
		_ = unix.MunmapPtr(unsafe.Pointer(base), uintptr(m.limit))
	}
}

func (m *mappedMemory) bytes() []byte {
	return m.upTo(m.length)
}

// shrink implements guestMemory.
func (m *mappedMemory) shrink(size int) { m.shrunk.set(size) }

// touched implements guestMemory.
func (m *mappedMemory) touched() []byte { return m.upTo(m.extent) }

func (m *mappedMemory) upTo(end uint64) []byte {
	base := m.base.Load()
	if base == nil {
		return nil
	}
	return unsafe.Slice(base, m.limit)[:end]
}

// start is the address of the memory.
func (m *mappedMemory) start() unsafe.Pointer { return unsafe.Pointer(m.base.Load()) }

// fileImage is a template in a file that only exists in memory, and a view of it.
type fileImage struct {
	fd   int
	view []byte
}

func (f *fileImage) close() {
	if f.view != nil {
		_ = unix.Munmap(f.view)
	}
	_ = unix.Close(f.fd)
}

// capture writes the memory to an image, pages of zeros left out.
func (m *mappedMemory) capture() (image, error) {
	fd, err := unix.MemfdCreate("mortise-template", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd_create: %w", err)
	}
	f := &fileImage{fd: fd}
	if err := unix.Ftruncate(fd, int64(m.length)); err != nil { // below 4 GiB
		f.close()
		return nil, fmt.Errorf("ftruncate: %w", err)
	}
	const page = 4096 // that of the machine or a part of it
	data := m.bytes()
	for at := 0; at < len(data); at += page {
		part := data[at:min(at+page, len(data))]
		if allZero(part) {
			continue
		}
		if n, err := unix.Pwrite(fd, part, int64(at)); err != nil || n != len(part) {
			f.close()
			return nil, fmt.Errorf("pwrite: %d of %d bytes: %w", n, len(part), err)
		}
	}
	if len(data) > 0 {
		if f.view, err = unix.Mmap(fd, 0, len(data), unix.PROT_READ, unix.MAP_SHARED); err != nil {
			f.close()
			return nil, fmt.Errorf("mmap: %w", err)
		}
	}
	return f, nil
}

func (m *mappedMemory) adopt(img image) error {
	f, ok := img.(*fileImage)
	if !ok {
		return fmt.Errorf("%w: the template is of another kind", engine.ErrEngine)
	}
	if m.length == 0 {
		return nil
	}
	_, err := unix.MmapPtr(f.fd, 0, m.start(), uintptr(m.length), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("%w: mapping the template: %w", engine.ErrEngine, err)
	}
	m.forget()
	return nil
}

// forget is for a memory whose pages were all dropped.
func (m *mappedMemory) forget() {
	m.dirty.forget()
	m.extent = m.length
}

func (f *fileImage) bytes() []byte { return f.view }

// begin is called before the guest runs, on a thread that the goroutine keeps until
// reset.
func (m *mappedMemory) begin() { m.dirty.faults.begin() }

// distrust implements guestMemory: another thread's faults are not seen.
func (m *mappedMemory) distrust() { m.dirty.faults.distrust() }

// reset puts the image back, and zeros behind it. Pages that the memory has of its own are copied,
// all others still show the image. A page becomes the memory's own by a fault, so when
// the thread had none, the pages are those of the last look.
func (m *mappedMemory) reset(img image) bool {
	f, ok := img.(*fileImage)
	if !ok || uint64(len(f.view)) != m.length {
		return false
	}
	data := m.touched()
	if len(data) == 0 {
		return true
	}
	if m.dirty.faulted() && !m.dirty.look(m.start(), f.view, len(data)) || m.dirty.stale(data, f.view) {
		m.forget()
		return unix.Madvise(data, unix.MADV_DONTNEED) == nil
	}
	for _, s := range m.dirty.spans {
		s.restore(data, f.view)
	}
	return true
}

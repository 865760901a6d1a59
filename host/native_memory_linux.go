package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newGuestMemory makes the memory of a guest: a private mapping that is put back
// by dropping the pages that changed, or the portable one where that cannot be
// had or is not wanted.
func newGuestMemory(limit uint64, kind memoryKind) guestMemory {
	if kind != memoryCopied {
		if m, err := newMapped(limit); err == nil {
			m.dirty.blind = kind == memoryBlind
			return m
		}
	}
	return &copyMemory{linearMemory{limit: limit}}
}

// mappedMemory reserves the address range of a whole memory and maps the image
// of a template over its start.
type mappedMemory struct {
	base   unsafe.Pointer
	limit  uint64
	length uint64
	dirty  dirtyPages
}

func newMapped(limit uint64) (*mappedMemory, error) {
	base, err := unix.MmapPtr(-1, 0, nil, uintptr(limit), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	return &mappedMemory{base: base, limit: limit}, nil
}

// Reallocate implements experimental.LinearMemory. The address never changes.
func (m *mappedMemory) Reallocate(size uint64) []byte {
	if m.base == nil || size > m.limit {
		return nil
	}
	m.length = size
	return m.bytes()
}

// Free implements experimental.LinearMemory.
func (m *mappedMemory) Free() {
	if m.base != nil {
		_ = unix.MunmapPtr(m.base, uintptr(m.limit))
		m.base, m.length = nil, 0
	}
}

func (m *mappedMemory) bytes() []byte {
	if m.base == nil {
		return nil
	}
	return unsafe.Slice((*byte)(m.base), m.limit)[:m.length]
}

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
		return fmt.Errorf("%w: the template is of another kind", ErrEngine)
	}
	if m.length == 0 {
		return nil
	}
	_, err := unix.MmapPtr(f.fd, 0, m.base, uintptr(m.length), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_FIXED|unix.MAP_NORESERVE)
	if err != nil {
		return fmt.Errorf("%w: mapping the template: %w", ErrEngine, err)
	}
	m.dirty.forget()
	return nil
}

func (f *fileImage) bytes() []byte { return f.view }

// changed implements guestMemory. Only pages that are the process's own can differ.
func (m *mappedMemory) changed(img image) ([]span, bool) {
	data, view := m.bytes(), img.bytes()
	switch {
	case len(data) != len(view):
		return nil, false
	case m.dirty.look(m.base, view):
		var out []span
		for _, s := range m.dirty.spans {
			out = differing(out, data, view, s.from, s.to)
		}
		return out, true
	case len(data) > maxCompared:
		return nil, false
	}
	return differing(nil, data, view, 0, len(data)), true
}

// begin is called before the guest runs, on a thread that the goroutine keeps until
// reset.
func (m *mappedMemory) begin() { m.dirty.faults.begin() }

// distrust implements guestMemory: another thread's faults are not seen.
func (m *mappedMemory) distrust() { m.dirty.faults.distrust() }

// reset puts the image back. Pages that the memory has of its own are copied, all
// others still show the image. A page becomes the memory's own by a fault, so when
// the thread had none, the pages are those of the last look.
func (m *mappedMemory) reset(img image) bool {
	f, ok := img.(*fileImage)
	if !ok || uint64(len(f.view)) != m.length {
		return ok && m.length == 0
	}
	data := m.bytes()
	if m.dirty.faulted() && !m.dirty.look(m.base, f.view) || m.dirty.stale(data, f.view) {
		m.dirty.forget()
		return unix.Madvise(data, unix.MADV_DONTNEED) == nil
	}
	for _, s := range m.dirty.spans {
		s.restore(data, f.view)
	}
	return true
}

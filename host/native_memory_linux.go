package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// newGuestMemory makes the memory of a guest: a private mapping that is put back
// by dropping the pages that changed, or the portable one where that cannot be
// had or is not wanted.
func newGuestMemory(limit uint64, portable bool) guestMemory {
	if !portable {
		if m, err := newMapped(limit); err == nil {
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

// fileImage is a template in a file that only exists in memory.
type fileImage struct{ fd int }

func (f *fileImage) close() { _ = unix.Close(f.fd) }

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
	const page = 4096
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
	return f, nil
}

func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
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
	return nil
}

// reset drops the pages that changed; the next look at them shows the image.
func (m *mappedMemory) reset(image) bool {
	return m.length == 0 || unix.Madvise(m.bytes(), unix.MADV_DONTNEED) == nil
}

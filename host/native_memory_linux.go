package host

import (
	"bytes"
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
	warm   warmPages
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

// reset puts the image back. Pages that calls usually change are copied, which
// is cheaper than dropping them and taking a page fault at the next touch; all
// others are dropped, and the next look at them shows the image.
func (m *mappedMemory) reset(img image) bool {
	f, ok := img.(*fileImage)
	if !ok || uint64(len(f.view)) != m.length {
		return ok && m.length == 0
	}
	data := m.bytes()
	m.warm.learn(data, f.view)
	from := 0
	for _, s := range m.warm.spans {
		if s.from > from && unix.Madvise(data[from:s.from], unix.MADV_DONTNEED) != nil {
			return false
		}
		copy(data[s.from:s.to], f.view[s.from:s.to])
		from = s.to
	}
	return from == len(data) || unix.Madvise(data[from:], unix.MADV_DONTNEED) == nil
}

// page is the size of a page of the machine; larger ones are a multiple of it.
const page = 4096

// When warm pages are looked for: at the first calls, and now and then later.
const (
	learnFirst = 4
	learnEvery = 1024
	// gap is how many clean pages are copied rather than ending a span: dropping
	// costs a system call.
	gap      = 16
	maxSpans = 24
)

// span is a range of bytes, whole pages.
type span struct{ from, to int }

// warmPages are those that the call at the last look had changed.
type warmPages struct {
	calls int
	spans []span
}

// learn compares memory and image, now and then.
func (w *warmPages) learn(data, img []byte) {
	w.calls++
	if w.calls > learnFirst && w.calls%learnEvery != 0 {
		return
	}
	w.spans = w.spans[:0]
	step := max(page, unix.Getpagesize())
	for at := 0; at < len(data); at += step {
		end := min(at+step, len(data))
		if bytes.Equal(data[at:end], img[at:end]) {
			continue
		}
		if n := len(w.spans); n > 0 && at-w.spans[n-1].to <= gap*step {
			w.spans[n-1].to = end
			continue
		}
		w.spans = append(w.spans, span{from: at, to: end})
	}
	if len(w.spans) > maxSpans {
		w.spans = w.spans[:0] // scattered: dropping all is one call
	}
}

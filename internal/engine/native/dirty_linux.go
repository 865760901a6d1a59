package native

import (
	"encoding/binary"
	"os"
	"runtime"
	"unsafe"
)

// Bounds on the pages that a memory keeps of its own between calls.
const (
	// maxOwn is how many bytes of them are copied back rather than dropped.
	maxOwn = 4 << 20
	// fewOwn is how many are not worth a second thought.
	fewOwn = 256 << 10
	// reviseEvery is after how many calls it is looked whether more than a few are
	// still used.
	reviseEvery = 64
)

// dirtyPages knows which pages of a private mapping are the process's own, so may
// differ from what is mapped. To drop such pages costs a system call, and a page
// fault for each at the next touch, read ones included; copying costs a hundredth
// of a fault. Looking at all of them after each call costs as much as dropping. But
// without a fault there is no new page.
type dirtyPages struct {
	spans []span
	bytes int
	// blind reports that faults or pages cannot be looked at here: /proc is not there,
	// or the kernel does not say. Then every call drops its pages.
	blind  bool
	faults threadFaults
	calls  int
}

// faulted reports whether a call may have made a page its own.
func (d *dirtyPages) faulted() bool { return d.blind || d.faults.faulted() }

// forget is for a memory whose pages were all dropped.
func (d *dirtyPages) forget() { d.spans, d.bytes, d.calls = d.spans[:0], 0, 0 }

// Bits of an entry of /proc/self/pagemap, see the kernel's admin-guide/mm/pagemap:
// the page is in memory, is swapped out, belongs to a file.
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61
)

// look finds the pages that are the process's own, over an image and the zeros behind it. It
// fails when it cannot, or when they are more than are kept.
func (d *dirtyPages) look(base unsafe.Pointer, img []byte, length int) bool {
	if d.blind {
		return false
	}
	table, err := os.Open("/proc/self/pagemap")
	if err != nil {
		d.blind = true
		return false
	}
	defer table.Close()
	const entry = 8
	page := os.Getpagesize()
	d.spans, d.bytes = d.spans[:0], 0
	var buf [512 * entry]byte
	for at := 0; at < length; at += len(buf) / entry * page {
		n := min(len(buf), (length-at+page-1)/page*entry)
		if got, err := table.ReadAt(buf[:n], int64((uintptr(base)+uintptr(at))/uintptr(page))*entry); err != nil || got != n {
			d.blind = true
			return false
		}
		for i := 0; i < n; i += entry {
			e := binary.LittleEndian.Uint64(buf[i:])
			if e&(pagePresent|pageSwapped) != 0 && e&pageOfFile == 0 {
				own := at + i/entry*page
				d.add(own, min(own+page, length), img)
			}
		}
		if d.bytes > maxOwn {
			return false
		}
	}
	return true
}

// add notes a page.
func (d *dirtyPages) add(from, to int, img []byte) {
	empty := allZero(part(img, from, to))
	d.bytes += to - from
	if last := len(d.spans) - 1; last >= 0 && d.spans[last].to == from && d.spans[last].empty == empty {
		d.spans[last].to = to
		return
	}
	d.spans = append(d.spans, span{from: from, to: to, empty: empty})
}

// stale tells, now and then, whether most of many pages are no longer used: one
// call with a large input must not make all later ones copy as much.
func (d *dirtyPages) stale(data, img []byte) bool {
	d.calls++
	if d.bytes <= fewOwn || d.calls%reviseEvery != 0 {
		return false
	}
	page, same := os.Getpagesize(), 0
	for _, s := range d.spans {
		for at := s.from; at < s.to; at += page {
			if end := min(at+page, s.to); matches(data[at:end], img, at) {
				same += end - at
			}
		}
	}
	return 2*same > d.bytes
}

// faultsAreTold tries on a page of its own whether the kernel counts faults and tells
// whose a page is. A sandbox may answer both questions with zeros, and a guest's
// state would then stay behind.
func faultsAreTold() bool {
	m, err := newMapped(uint64(4 * os.Getpagesize()))
	if err != nil {
		return false
	}
	defer m.Free()
	data := m.Reallocate(m.limit)
	img, err := m.capture()
	if err != nil {
		return false
	}
	defer img.close()
	if m.adopt(img) != nil {
		return false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	file, ok := img.(*fileImage)
	if !ok {
		return false
	}
	own := func(pages int) bool {
		return m.dirty.look(m.start(), file.view, len(file.view)) && m.dirty.bytes == pages*os.Getpagesize()
	}
	for pages, at := range []int{0, 2 * os.Getpagesize()} {
		m.begin()
		read := data[at+1] // maps the page of the image
		m.begin()
		data[at] = read + 1
		if !m.dirty.faulted() || !own(pages+1) || !m.reset(img) || data[at] != 0 {
			return false
		}
	}
	m.begin()
	data[1] = 1
	return m.reset(img) && data[1] == 0 && !m.dirty.blind
}

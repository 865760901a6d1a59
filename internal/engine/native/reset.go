package native

import (
	"bytes"
	"fmt"
)

// span is a range of bytes. Those of an image that are empty are cleared rather than copied.
type span struct {
	from, to int
	empty    bool
}

// restore resets the bytes to those of the image.
func (s span) restore(data, img []byte) {
	if s.empty {
		clear(data[s.from:s.to])
		return
	}
	copy(data[s.from:s.to], img[s.from:s.to])
}

// resetMemory resets the memory of a guest that has one, and gives back what the call added to it. It reports whether
// the memory is as it was.
func (i *nativeInstance) resetMemory() bool {
	if !i.shrink() {
		return false
	}
	ok := i.mems.guest.reset(i.adopted)
	if ok && i.prog.verify && !i.isReset() {
		panic(fmt.Sprintf("host: module %q: the memory was not reset", i.prog.Name))
	}
	return ok
}

// verifiedBytes is how many bytes behind a template [nativeInstance.isReset] compares.
const verifiedBytes = 1 << 20

// isReset reports whether the memory is that of the template, and the next bytes behind it are zero.
func (i *nativeInstance) isReset() bool {
	m, img := &i.mems.guest, i.adopted.image.bytes()
	return bytes.Equal(m.bytes(), img) && allZero(part(m.memory.touched(), len(img), len(img)+verifiedBytes))
}

// part is a range of an image, as far as it reaches. Behind it are zeros.
func part(img []byte, from, to int) []byte { return img[min(from, len(img)):min(to, len(img))] }

// matches reports whether bytes at an offset are those of an image.
func matches(data, img []byte, at int) bool {
	same := part(img, at, at+len(data))
	return bytes.Equal(data[:len(same)], same) && allZero(data[len(same):])
}

// allZero reports whether a page is empty: each byte equals the one before, and the
// first is zero.
func allZero(b []byte) bool { return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1]) }

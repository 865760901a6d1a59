package guest

import (
	"unsafe"

	"github.com/mortise-dev/mortise/abi"
)

// kept is a message whose encoding is kept.
type kept struct {
	// own is a copy that shares nothing that can change.
	own abi.Message
	// shown is the message as it was, if texts and numbers are all that it holds.
	shown abi.Message
	plain bool
}

// keep remembers a message. It returns false for one that cannot be compared.
func keep(m *abi.Message) (k kept, ok bool) {
	k.own, ok = copyMessage(m)
	if k.plain = len(m.ToolCalls) == 0 && m.Metadata == nil; k.plain {
		k.shown = *m
	}
	return k, ok
}

// is tells whether a message has the same encoding as the one that is kept. Most are
// the very same, and then a glance is enough: a text does not change, so one at
// the same place and of the same length is the same. What can be changed in place, the
// blocks of the content, is looked at too.
func (k *kept) is(m *abi.Message) bool {
	if !k.plain || bytesOf(&k.shown) != bytesOf(m) {
		return sameMessage(&k.own, m)
	}
	for i := range m.Content {
		if bytesOf(&k.own.Content[i]) != bytesOf(&m.Content[i]) {
			return sameMessage(&k.own, m)
		}
	}
	return true
}

// bytesOf is a value as it stands in memory: pointers, lengths and numbers. Values whose
// bytes are equal are equal, as long as what they point to is kept alive, so that nothing
// else comes to stand there; not so the other way round.
func bytesOf[T any](v *T) string {
	return unsafe.String((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v))
}

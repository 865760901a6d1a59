package wire

import "bytes"

// Raw is one MessagePack value that is encoded already, by [MarshalRaw]: it becomes
// part of a larger one as it is. It is not looked at again. JSON does not take it.
type Raw []byte

// MarshalRaw encodes v as a part of a larger value, inside depth maps and arrays.
func MarshalRaw(v any, depth int) (Raw, error) {
	var out Raw
	err := lendMessagePack(v, depth, func(data []byte) error {
		out = bytes.Clone(data)
		return nil
	})
	return out, err
}

// MarshalJSON refuses: the bytes are MessagePack.
func (Raw) MarshalJSON() ([]byte, error) { return nil, ErrValue }

func (e *encoder) raw(r Raw) error {
	if len(r) == 0 {
		return e.out.EncodeNil()
	}
	_, err := e.buf.Write(r)
	return err
}

package egress

import (
	"bytes"
	"compress/zlib"
	"errors"
	"io"
)

// compressed reports whether a body begins as one that is compressed with gzip, zlib, zstd, bzip2, xz
// or lz4. Brotli and deflate without a header begin like anything else.
func compressed(body []byte) bool {
	for _, magic := range []string{"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\xfd7zXZ\x00", "\x04\x22\x4d\x18"} {
		if bytes.HasPrefix(body, []byte(magic)) {
			return true
		}
	}
	const bzip2 = 4 // the size of its header
	switch {
	case len(body) > bzip2 && string(body[:3]) == "BZh" && (bytes.HasPrefix(body[bzip2:], []byte("1AY&SY")) || bytes.HasPrefix(body[bzip2:], []byte("\x17\x72\x45\x38\x50\x90"))):
		return true
	case len(body) > 3 && body[0]&0xf0 == 0x50 && string(body[1:4]) == "\x2a\x4d\x18": // a frame of zstd or lz4 to be skipped
		return true
	}
	return zlibbed(body)
}

// enough is how many bytes a text that only looks like zlib does not unpack to.
const enough = 4 << 10

// zlibbed reports whether a body can be unpacked with zlib: to its checksum, or far enough. Its header
// is only two bytes, which a text can begin with.
func zlibbed(body []byte) bool {
	r, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return false
	}
	defer r.Close()
	n, err := io.CopyN(io.Discard, r, enough)
	return n == enough || errors.Is(err, io.EOF)
}

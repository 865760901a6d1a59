package wire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// MaxBody is how large a body is that is still read, after it is decoded.
const MaxBody = 64 << 20

// ErrCoding is a Content-Encoding that is not known.
var ErrCoding = errors.New("unknown content encoding")

// maxWindow bounds what a stream of zstd may ask for.
const maxWindow = 8 << 20

// Decoder returns a reader of what a Content-Encoding holds. An empty encoding and identity return r itself.
func Decoder(coding string, r io.Reader) (io.Reader, error) {
	switch strings.ToLower(strings.TrimSpace(coding)) {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
		return gzip.NewReader(r)
	case "br":
		return brotli.NewReader(r), nil
	case "zstd":
		d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case "deflate":
		return inflate(r)
	}
	return nil, fmt.Errorf("%w: %.40q", ErrCoding, coding)
}

// inflate reads deflate, which is zlib by the standard and raw with some senders.
func inflate(r io.Reader) (io.Reader, error) {
	var head [2]byte
	n, err := io.ReadFull(r, head[:])
	if err != nil {
		return nil, err
	}
	all := io.MultiReader(bytes.NewReader(head[:n]), r)
	if head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(all)
	}
	return flate.NewReader(all), nil
}

// Decode returns a whole body decoded, at most MaxBody of it.
func Decode(coding string, body []byte) ([]byte, error) {
	if coding == "" || strings.EqualFold(coding, "identity") {
		return body, nil
	}
	r, err := Decoder(coding, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	out, err := io.ReadAll(io.LimitReader(r, MaxBody+1))
	if c, ok := r.(io.Closer); ok {
		_ = c.Close()
	}
	if err != nil {
		return nil, err
	}
	if len(out) > MaxBody {
		return nil, fmt.Errorf("the body has more than %d bytes", MaxBody)
	}
	return out, nil
}

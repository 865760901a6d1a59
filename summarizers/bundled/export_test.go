package bundled

import (
	"bytes"

	"github.com/andybalholm/brotli"
)

// Unpack is unpack, for tests.
func Unpack(packed, sum string) ([]byte, error) { return unpack(packed, sum) }

// Pack compresses.
func Pack(text string) string {
	var out bytes.Buffer
	w := brotli.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

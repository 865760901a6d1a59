package bundle

import (
	"archive/tar"
	"bytes"

	"github.com/andybalholm/brotli"
)

// Unpack is unpack, for tests.
func Unpack(packed, sums, name string) error {
	_, _, err := unpack(packed, sums, name)
	return err
}

// Pack makes an archive of one file.
func Pack(name, text string) string {
	var out bytes.Buffer
	w := brotli.NewWriter(&out)
	archive := tar.NewWriter(w)
	if err := archive.WriteHeader(&tar.Header{Name: name, Size: int64(len(text))}); err != nil {
		panic(err)
	}
	if _, err := archive.Write([]byte(text)); err != nil {
		panic(err)
	}
	if err := archive.Close(); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return out.String()
}

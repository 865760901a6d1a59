package bundle

import (
	"archive/tar"
	"crypto/sha256"
	_ "embed" // the guests
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/andybalholm/brotli"

	"github.com/mortise-dev/mortise/host"
)

//go:embed guests.tar.br
var packed string

//go:embed guests.sha256
var sums string

// maxSize bounds a guest, in bytes.
const maxSize = 16 << 20

// Spec returns a guest by its name.
func Spec(name string) (host.Spec, error) {
	wasm, sum, err := unpack(packed, sums, name+".wasm")
	if err != nil {
		return host.Spec{}, fmt.Errorf("bundled: %s.wasm: %w", name, err)
	}
	return host.Spec{Name: name, Path: "bundled/" + name + ".wasm", Wasm: wasm, SHA256: sum}, nil
}

// unpack returns a file of the archive, and its checksum, which is one of those in the format of sha256sum.
func unpack(packed, sums, name string) (wasm []byte, sum string, err error) {
	archive := tar.NewReader(brotli.NewReader(strings.NewReader(packed)))
	h, err := archive.Next()
	for err == nil && h.Name != name {
		h, err = archive.Next()
	}
	switch {
	case err != nil:
		return nil, "", err
	case h.Size > maxSize:
		return nil, "", errors.New("it is too large")
	}
	if wasm, err = io.ReadAll(archive); err != nil {
		return nil, "", err
	}
	digest := sha256.Sum256(wasm)
	sum = hex.EncodeToString(digest[:])
	if !slices.Contains(strings.Split(sums, "\n"), sum+"  "+name) {
		return nil, "", errors.New("its checksum is wrong")
	}
	return wasm, sum, nil
}

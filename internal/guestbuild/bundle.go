package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/andybalholm/brotli"
)

// Where the guests are that a package embeds.
const (
	bundleDir  = "internal/bundle"
	bundleFile = "guests.tar.br"
	bundleSums = "guests.sha256"
)

// bundle writes the bundled guests of the folder into one compressed archive, which has what they share, such as Go's
// runtime, once, and their sums next to it.
func (b *builder) bundle(folder string) error {
	if !slices.ContainsFunc(b.list, func(g guest) bool { return g.bundled }) {
		return nil
	}
	packed, sums, err := pack(folder)
	if err != nil {
		return fmt.Errorf("guestbuild: %s: %w", bundleDir, err)
	}
	to := filepath.Join(b.root, bundleDir)
	for name, data := range map[string][]byte{bundleFile: packed, bundleSums: formatSums(sums)} {
		if err := os.WriteFile(filepath.Join(to, name), data, 0o644); err != nil {
			return fmt.Errorf("guestbuild: %s: %w", bundleDir, err)
		}
	}
	b.say("%d guests %9d bytes compressed in %s", len(sums), len(packed), bundleDir)
	return nil
}

// bundleIsFresh reports whether bundleDir holds the guest of the folder, and its sum.
func (b *builder) bundleIsFresh(g guest, folder string) bool {
	if !g.bundled {
		return true
	}
	name := g.name + ".wasm"
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		return false
	}
	at := filepath.Join(b.root, bundleDir)
	packed, err := os.ReadFile(filepath.Join(at, bundleFile))
	if err != nil {
		return false
	}
	kept, err := unpack(packed)
	if err != nil || !bytes.Equal(kept[name], data) {
		return false
	}
	sums, err := readSums(filepath.Join(at, bundleSums))
	sum := sha256.Sum256(data)
	return err == nil && sums[name] == hex.EncodeToString(sum[:]) && onlyBundled(kept) && onlyBundled(sums)
}

// onlyBundled reports whether the names are those of bundled guests.
func onlyBundled[V any](files map[string]V) bool {
	for _, g := range guests() {
		if g.bundled {
			delete(files, g.name+".wasm")
		}
	}
	return len(files) == 0
}

// pack makes an archive of the bundled guests that a folder has.
func pack(folder string) (packed []byte, sums map[string]string, err error) {
	var out bytes.Buffer
	compressed := brotli.NewWriterOptions(&out, brotli.WriterOptions{Quality: brotli.BestCompression, LGWin: 24})
	archive := tar.NewWriter(compressed)
	sums = map[string]string{}
	for _, g := range guests() {
		name := g.name + ".wasm"
		data, err := os.ReadFile(filepath.Join(folder, name))
		if !g.bundled || errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return nil, nil, err
		}
		if _, err := archive.Write(data); err != nil {
			return nil, nil, err
		}
		sum := sha256.Sum256(data)
		sums[name] = hex.EncodeToString(sum[:])
	}
	if err := errors.Join(archive.Close(), compressed.Close()); err != nil {
		return nil, nil, err
	}
	return out.Bytes(), sums, nil
}

// unpack returns the files of an archive that has nothing behind its end.
func unpack(packed []byte) (map[string][]byte, error) {
	text, err := io.ReadAll(brotli.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for archive := tar.NewReader(bytes.NewReader(text)); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
}

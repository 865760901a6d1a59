package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/andybalholm/brotli"
)

// bundleDir holds the guests that a package embeds.
const bundleDir = "summarizers/bundled"

// bundle writes a bundled guest of the folder compressed, and its sum, into bundleDir.
func (b *builder) bundle(g guest, folder string) error {
	if !g.bundled {
		return nil
	}
	packed, sum, err := pack(filepath.Join(folder, g.name+".wasm"))
	if err != nil {
		return err
	}
	to := filepath.Join(b.root, bundleDir, g.name+".wasm")
	if err := os.WriteFile(to+".br", packed, 0o644); err != nil {
		return fmt.Errorf("guestbuild: %s: %w", bundleDir, err)
	}
	if err := os.WriteFile(to+".sha256", []byte(sum), 0o644); err != nil {
		return fmt.Errorf("guestbuild: %s: %w", bundleDir, err)
	}
	b.say("%-12s %9d bytes compressed in %s", g.name, len(packed), bundleDir)
	return nil
}

// bundleIsFresh reports whether bundleDir holds the guest of the folder, and its sum.
func (b *builder) bundleIsFresh(g guest, folder string) bool {
	if !g.bundled {
		return true
	}
	data, err := os.ReadFile(filepath.Join(folder, g.name+".wasm"))
	if err != nil {
		return false
	}
	at := filepath.Join(b.root, bundleDir, g.name+".wasm")
	packed, err := os.ReadFile(at + ".br")
	if err != nil {
		return false
	}
	unpacked, err := io.ReadAll(brotli.NewReader(bytes.NewReader(packed)))
	if err != nil || !bytes.Equal(unpacked, data) {
		return false
	}
	sum, err := os.ReadFile(at + ".sha256")
	return err == nil && string(sum) == sumOf(data)
}

// sumOf is the text of a checksum file.
func sumOf(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:]) + "\n"
}

// pack compresses a file, and returns the text of its checksum file.
func pack(path string) (packed []byte, sum string, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, "", fmt.Errorf("guestbuild: %s: %w", filepath.Base(path), err)
	}
	var out bytes.Buffer
	w := brotli.NewWriterOptions(&out, brotli.WriterOptions{Quality: brotli.BestCompression, LGWin: 24})
	if _, err := w.Write(data); err != nil {
		return nil, "", fmt.Errorf("guestbuild: %s: %w", filepath.Base(path), err)
	}
	if err := w.Close(); err != nil {
		return nil, "", fmt.Errorf("guestbuild: %s: %w", filepath.Base(path), err)
	}
	return out.Bytes(), sumOf(data), nil
}

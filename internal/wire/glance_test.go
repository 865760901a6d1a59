package wire_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/wire"
)

// TestGlance: what passes at a glance passes the scan, too: the vectors, good and bad,
// cut off, changed in each byte, and inputs by chance.
func TestGlance(t *testing.T) {
	t.Parallel()
	passed := 0
	try := func(data []byte) bool {
		if !wire.Glance(data) {
			return false
		}
		passed++
		if err := wire.Scan(data); err != nil {
			t.Errorf("%q: %v", data, err)
		}
		return true
	}
	for _, pattern := range []string{"*", "bad/*", "lenient/*"} {
		paths, err := filepath.Glob(folder(pattern + ".msgpack"))
		if err != nil || len(paths) == 0 {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !try(data) && strings.HasPrefix(filepath.Base(path), "reply.gate_") && pattern == "*" {
				t.Errorf("%s does not pass at a glance", path)
			}
			for at := range data[:min(len(data), 120)] {
				try(data[:at])
				was := data[at]
				for _, now := range []byte{0x00, 0x81, 0x8f, 0x90, 0xa1, 0xc1, 0xc4, 0xcb, 0xcc, 0xd4, 0xd9, 0xdf} {
					data[at] = now
					try(data)
				}
				data[at] = was
			}
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	codes := []byte{0x01, 0x81, 0x82, 0x90, 0x91, 0x92, 0xa0, 0xa1, 0xc0, 0xc2, 0xcc, 0xd0}
	for range 20_000 {
		data := make([]byte, r.IntN(24))
		for i := range data {
			data[i] = codes[r.IntN(len(codes))]
		}
		try(data)
	}
	if passed < 1000 {
		t.Errorf("only %d inputs passed", passed)
	}
}

package bundle_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/bundle"
)

// TestSameAsTheTestdata: what is embedded is what the repository's tests run.
func TestSameAsTheTestdata(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"summarizers", "admission", "guard", "redact"} {
		spec, err := bundle.Spec(name)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(filepath.Join("..", "..", "testdata", "guests", name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(spec.Wasm, want) || spec.Name != name || len(spec.SHA256) != 64 {
			t.Errorf("%s: %d bytes, %d in testdata/guests", name, len(spec.Wasm), len(want))
		}
	}
}

// TestSize: the guests together stay below 1.3 MB in a program that has them.
func TestSize(t *testing.T) {
	t.Parallel()
	info, err := os.Stat("guests.tar.br")
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes are embedded", info.Size())
	if info.Size() > 1_300_000 {
		t.Errorf("%d bytes are embedded, more than 1,300,000", info.Size())
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	for want, packed := range map[string]string{
		"EOF":                   "",
		"brotli: ":              strings.Repeat("nonsense", 9),
		"its checksum is wrong": bundle.Pack("m.wasm", "something else"),
		"it is too large":       bundle.Pack("m.wasm", strings.Repeat("x", 16<<20+1)),
	} {
		if err := bundle.Unpack(packed, strings.Repeat("0", 64)+"  m.wasm\n", "m.wasm"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	if _, err := bundle.Spec("nothing"); err == nil || err.Error() != "bundled: nothing.wasm: EOF" {
		t.Errorf("error %v", err)
	}
}

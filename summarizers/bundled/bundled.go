package bundled

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	_ "embed" // the guests
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/host"
)

//go:embed summarizers.wasm.gz
var packedSummarizers string

//go:embed summarizers.wasm.sha256
var sumSummarizers string

//go:embed admission.wasm.gz
var packedAdmission string

//go:embed admission.wasm.sha256
var sumAdmission string

// maxSize bounds a guest, in bytes.
const maxSize = 16 << 20

// Summarizers returns the guest with the bundled summarizers, for host.Host.Load. Grant it
// Grants.Model for the policies anchored and hybrid; it loads without. Its calls may need more
// time than the host's default: set Limits.Timeout.
func Summarizers() (host.Spec, error) {
	return spec("summarizers", packedSummarizers, sumSummarizers)
}

// Admission returns the guest with the bundled admission policies.
func Admission() (host.Spec, error) { return spec("admission", packedAdmission, sumAdmission) }

// NeedsModel tells whether a bundled summarizer cannot do without a model.
func NeedsModel(policy string) bool { return slices.Contains([]string{"anchored"}, policy) }

func spec(name, packed, sum string) (host.Spec, error) {
	sum = strings.TrimSpace(sum)
	wasm, err := unpack(packed, sum)
	if err != nil {
		return host.Spec{}, fmt.Errorf("bundled: %s.wasm: %w", name, err)
	}
	return host.Spec{Name: name, Path: "bundled/" + name + ".wasm", Wasm: wasm, SHA256: sum}, nil
}

func unpack(packed, sum string) ([]byte, error) {
	r, err := gzip.NewReader(strings.NewReader(packed))
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if n, err := io.Copy(&out, io.LimitReader(r, maxSize+1)); err != nil {
		return nil, err
	} else if n > maxSize {
		return nil, errors.New("it is too large")
	}
	if got := sha256.Sum256(out.Bytes()); hex.EncodeToString(got[:]) != sum {
		return nil, errors.New("its checksum is wrong")
	}
	return out.Bytes(), nil
}

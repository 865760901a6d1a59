package bundled

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed" // the guests
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/andybalholm/brotli"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/summarizers"
)

//go:embed summarizers.wasm.br
var packedSummarizers string

//go:embed summarizers.wasm.sha256
var sumSummarizers string

//go:embed admission.wasm.br
var packedAdmission string

//go:embed admission.wasm.sha256
var sumAdmission string

// maxSize bounds a guest, in bytes.
const maxSize = 16 << 20

// Summarizers returns the guest with the bundled summarizers, for host.Host.Load. Grant it
// Spec.Grants with a model.Grant for the policy anchored; it loads without. Its calls may need more
// time than the host's default: set Limits.Timeout.
func Summarizers() (host.Spec, error) {
	return spec("summarizers", packedSummarizers, sumSummarizers)
}

// Admission returns the guest with the bundled admission policies.
func Admission() (host.Spec, error) { return spec("admission", packedAdmission, sumAdmission) }

// summarizeTimeout is how long a call of a summarizer may take, on a long conversation and a busy
// machine.
const summarizeTimeout = 2 * time.Minute

// Open loads the bundled summarizers into a host, and opens one that needs no model: ledger, the default, mask, or gc.
// It belongs to the host, and is closed with it. For another limit, a model or a configuration load
// [Summarizers] and use summarizers.Open.
func Open(ctx context.Context, h *host.Host, policy string) (*summarizers.Policy, error) {
	if NeedsModel(policy) {
		return nil, fmt.Errorf("bundled: policy %q needs a model: load Summarizers with a grant of models (host/capability/model)", policy)
	}
	spec, err := Summarizers()
	if err != nil {
		return nil, err
	}
	spec.Limits.Timeout = summarizeTimeout
	m, err := h.Load(ctx, spec)
	if err != nil {
		return nil, fmt.Errorf("bundled: %w", err)
	}
	p, err := summarizers.Open(ctx, m, summarizers.Config{Use: summarizers.UseSummarize, Policy: policy})
	if err != nil {
		return nil, fmt.Errorf("bundled: %w", errors.Join(err, m.Close(ctx)))
	}
	return p, nil
}

// NeedsModel reports whether a bundled summarizer cannot do without a model.
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
	var out bytes.Buffer
	if n, err := io.Copy(&out, io.LimitReader(brotli.NewReader(strings.NewReader(packed)), maxSize+1)); err != nil {
		return nil, err
	} else if n > maxSize {
		return nil, errors.New("it is too large")
	}
	if got := sha256.Sum256(out.Bytes()); hex.EncodeToString(got[:]) != sum {
		return nil, errors.New("its checksum is wrong")
	}
	return out.Bytes(), nil
}

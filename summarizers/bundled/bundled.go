package bundled

import (
	"archive/tar"
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

//go:embed guests.tar.br
var packed string

//go:embed guests.sha256
var sums string

// maxSize bounds a guest, in bytes.
const maxSize = 16 << 20

// Summarizers returns the guest with the bundled summarizers, for host.Host.Load. Grant it
// Spec.Grants with a model.Grant for the policy anchored; it loads without. Its calls may need more
// time than the host's default: set Limits.Timeout.
func Summarizers() (host.Spec, error) {
	return spec("summarizers")
}

// Admission returns the guest with the bundled admission policies.
func Admission() (host.Spec, error) { return spec("admission") }

// summarizeTimeout is how long a call of a summarizer may take, on a long conversation and a busy
// machine.
const summarizeTimeout = 2 * time.Minute

// Open loads the bundled summarizers into a host, and opens one that needs no model: ledger, the default, or gc.
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

func spec(name string) (host.Spec, error) {
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

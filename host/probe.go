package host

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mortise-dev/mortise/internal/engine"
)

// sectionVectors is the custom section in which a module brings its own test
// vectors along: a JSON array of at most 64 vectors.
const sectionVectors = "mortise:vectors"

// Bounds on test vectors.
const (
	maxVectors      = 64
	maxVectorsBytes = 1 << 20
)

// exportDescribe is called as the first probe, where it is there.
const exportDescribe = "describe"

// vector is a call that a generation must pass before it takes over. Input and Output are text; InputBytes and OutputBytes,
// base64 in JSON, are used in their place when they are there. Without an output any will do.
type vector struct {
	Name        string  `json:"name"`
	Export      string  `json:"export"`
	Input       string  `json:"input"`
	InputBytes  []byte  `json:"input_base64"`
	Output      *string `json:"output"`
	OutputBytes []byte  `json:"output_base64"`
	// Refused means that the guest must refuse the input with a [GuestError].
	Refused bool `json:"refused"`
}

// vectors reads the module's own.
func (g *Generation) vectors() ([]vector, error) {
	data := g.parsed.Section(sectionVectors)
	if data == nil {
		return nil, nil
	}
	if len(data) > maxVectorsBytes {
		return nil, fmt.Errorf("section %s has %d bytes, %d are allowed", sectionVectors, len(data), maxVectorsBytes)
	}
	var list []vector
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("section %s: %s", sectionVectors, engine.Clean(err.Error(), engine.MaxDetail))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("section %s: there is more behind its array", sectionVectors)
	}
	if len(list) > maxVectors {
		return nil, fmt.Errorf("section %s has %d vectors, %d are allowed", sectionVectors, len(list), maxVectors)
	}
	return list, nil
}

// probe calls describe, if the binary exports it, and then runs its own test vectors. The error names the first one that
// failed.
func (g *Generation) probe(ctx context.Context) error {
	list, err := g.vectors()
	if err != nil {
		return err
	}
	if g.HasExport(exportDescribe) {
		list = append([]vector{{Export: exportDescribe}}, list...)
	}
	for _, v := range list {
		if err := g.pass(ctx, v); err != nil {
			return fmt.Errorf("probe %q: %w", engine.Clean(cmp.Or(v.Name, v.Export), engine.MaxName), err)
		}
	}
	return nil
}

// pass runs one vector.
func (g *Generation) pass(ctx context.Context, v vector) error {
	input, want := []byte(v.Input), v.OutputBytes
	if v.InputBytes != nil {
		input = v.InputBytes
	}
	if v.Output != nil && want == nil {
		want = []byte(*v.Output)
	}
	out, err := g.Call(ctx, v.Export, input)
	_, refused := errors.AsType[*GuestError](err)
	switch {
	case v.Refused && refused:
		return nil
	case v.Refused && err == nil:
		return errors.New("the guest accepted what it should refuse")
	case err != nil:
		return err
	case want != nil && !bytes.Equal(out, want):
		return fmt.Errorf("got %d bytes (%s), want %d (%s)", len(out), excerpt(out), len(want), excerpt(want))
	}
	return nil
}

// excerpt is the start of an output, fit for an error.
func excerpt(b []byte) string {
	const enough = 64
	return fmt.Sprintf("%q", engine.Clean(string(b[:min(len(b), enough)]), 4*enough))
}

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mortise-dev/mortise/internal/engine"
)

// SectionVectors is the custom section in which a module brings its own test
// vectors along: a JSON array of at most 64 [Vector] objects.
const SectionVectors = "mortise:vectors"

// Bounds on test vectors.
const (
	maxVectors      = 64
	maxVectorsBytes = 1 << 20
)

// exportDescribe is called as the first probe, where it is there.
const exportDescribe = "describe"

// Probe is a call that a generation must pass before it takes over.
type Probe struct {
	// Name for errors; the export's when empty.
	Name   string
	Export string
	Input  []byte
	// Want is the output. Nil takes any.
	Want []byte
	// Refused means that the guest must refuse the input with a [GuestError].
	Refused bool
	// Check looks at the output when it is set.
	Check func(output []byte) error
}

// Vector is a [Probe] as it stands in the section [SectionVectors]. Input and
// Output are text; InputBytes and OutputBytes, base64 in JSON, are used in their
// place when they are there.
type Vector struct {
	Name        string  `json:"name"`
	Export      string  `json:"export"`
	Input       string  `json:"input"`
	InputBytes  []byte  `json:"input_base64"`
	Output      *string `json:"output"`
	OutputBytes []byte  `json:"output_base64"`
	Refused     bool    `json:"refused"`
}

func (v Vector) probe() Probe {
	p := Probe{Name: v.Name, Export: v.Export, Input: []byte(v.Input), Want: v.OutputBytes, Refused: v.Refused}
	if v.InputBytes != nil {
		p.Input = v.InputBytes
	}
	if v.Output != nil && p.Want == nil {
		p.Want = []byte(*v.Output)
	}
	return p
}

// vectors reads the module's own.
func (g *Generation) vectors() ([]Probe, error) {
	data := g.parsed.Section(SectionVectors)
	if data == nil {
		return nil, nil
	}
	if len(data) > maxVectorsBytes {
		return nil, fmt.Errorf("section %s has %d bytes, %d are allowed", SectionVectors, len(data), maxVectorsBytes)
	}
	var list []Vector
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf("section %s: %s", SectionVectors, engine.Clean(err.Error(), engine.MaxDetail))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("section %s: there is more behind its array", SectionVectors)
	}
	if len(list) > maxVectors {
		return nil, fmt.Errorf("section %s has %d vectors, %d are allowed", SectionVectors, len(list), maxVectors)
	}
	probes := make([]Probe, len(list))
	for i, v := range list {
		probes[i] = v.probe()
	}
	return probes, nil
}

// Probe calls describe, if the binary exports it, then runs the test vectors of
// the section [SectionVectors], then the probes given. The error is a
// [*SwapError] that names the first one that failed.
func (g *Generation) Probe(ctx context.Context, probes []Probe) error {
	own, err := g.vectors()
	if err != nil {
		return &SwapError{Module: g.module.name, Err: err}
	}
	var all []Probe
	if g.HasExport(exportDescribe) {
		all = append(all, Probe{Export: exportDescribe})
	}
	for _, p := range append(append(all, own...), probes...) {
		if err := g.pass(ctx, p); err != nil {
			name := p.Name
			if name == "" {
				name = p.Export
			}
			return &SwapError{Module: g.module.name, Probe: engine.Clean(name, engine.MaxName), Err: err}
		}
	}
	return nil
}

// pass runs one probe.
func (g *Generation) pass(ctx context.Context, p Probe) error {
	out, err := g.Call(ctx, p.Export, p.Input)
	var refusal *GuestError
	switch {
	case p.Refused && errors.As(err, &refusal):
		return nil
	case p.Refused && err == nil:
		return errors.New("the guest accepted what it should refuse")
	case err != nil:
		return err
	case p.Want != nil && !bytes.Equal(out, p.Want):
		return fmt.Errorf("got %d bytes (%s), want %d (%s)", len(out), excerpt(out), len(p.Want), excerpt(p.Want))
	case p.Check != nil:
		return p.Check(out)
	}
	return nil
}

// excerpt is the start of an output, fit for an error.
func excerpt(b []byte) string {
	const enough = 64
	return fmt.Sprintf("%q", engine.Clean(string(b[:min(len(b), enough)]), 4*enough))
}

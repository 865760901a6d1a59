package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/internal/wire"
)

// Sentinels for what can be wrong with a guest beyond its Wasm.
var (
	ErrNoDescribe  = errors.New("offers no description")
	ErrVersion     = errors.New("speaks no contract version that this host knows")
	ErrDescription = errors.New("describes itself wrongly")
	ErrConfig      = errors.New("refuses its config")
	ErrDecode      = errors.New("answered something that cannot be decoded")
)

// Calls calls exports, as host.Generation and host.Session do. Call must keep nothing of the input, whose memory is
// used again, and nothing of what it returns.
type Calls interface {
	Call(ctx context.Context, export string, input ...[]byte) ([]byte, error)
}

// Caller is a loaded module, as host.Module is one.
type Caller interface {
	Calls

	Name() string
	HasExport(name string) bool
	Section(name string) []byte
	Imports(module, name string) bool
}

// Guest is a module that has described itself.
type Guest struct {
	caller  Caller
	format  wire.Format
	version int
	desc    abi.Description
	// lazy are the phases whose hooks read messages that are not sent.
	lazy []abi.Phase
	// gates reports that it decides about tool calls.
	gates bool
	// more reports that the module reads messages beyond those of its event.
	more bool
	// messages are the encodings of those that the module got.
	messages messageCache
}

// Open reads the module's description, from its custom section if it has one
// and else by calling describe, and agrees on a version.
func Open(ctx context.Context, c Caller) (*Guest, error) {
	raw := c.Section(abi.ManifestSection)
	if len(raw) == 0 {
		if !c.HasExport(abi.ExportDescribe) {
			return nil, fmt.Errorf("guest: module %q: %w: export %q or add a custom section %q; the SDKs do it",
				c.Name(), ErrNoDescribe, abi.ExportDescribe, abi.ManifestSection)
		}
		out, err := c.Call(ctx, abi.ExportDescribe, nil)
		if err != nil {
			return nil, fmt.Errorf("guest: module %q: describe: %w", c.Name(), err)
		}
		raw = out
	}
	g := &Guest{caller: c, format: wire.Detect(raw), more: c.Imports(abi.ModuleHost, abi.ImportMessagesGet)}
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil, fmt.Errorf("guest: module %q: %w: describe returned nothing; return a Description",
			c.Name(), ErrDescription)
	}
	if err := g.format.Unmarshal(raw, &g.desc); err != nil {
		return nil, fmt.Errorf("guest: module %q: %w: describe: %w", c.Name(), ErrDescription, err)
	}
	if err := checkDescription(&g.desc); err != nil {
		return nil, fmt.Errorf("guest: module %q: %w: %w", c.Name(), ErrDescription, err)
	}
	var err error
	if g.lazy, err = lazyPhases(&g.desc, g.format); err != nil {
		return nil, fmt.Errorf("guest: module %q: %w: %w", c.Name(), ErrDescription, err)
	}
	g.gates = gates(&g.desc)
	version, err := negotiate(g.desc.ABI)
	if err != nil {
		return nil, fmt.Errorf("guest: module %q: %w", c.Name(), err)
	}
	g.version = version
	return g, nil
}

// negotiate returns the highest version that both sides speak.
func negotiate(r abi.VersionRange) (int, error) {
	version := min(r.Max, abi.Version)
	if version >= max(r.Min, abi.MinVersion) {
		return version, nil
	}
	hint := "use a newer mortise"
	if r.Max < abi.MinVersion {
		hint = "rebuild the module with a current SDK"
	}
	return 0, fmt.Errorf("%w: the module speaks ABI %d to %d, this host %d to %d; %s",
		ErrVersion, r.Min, r.Max, abi.MinVersion, abi.Version, hint)
}

// Description returns what the module said of itself. It is shared; do not change it.
func (g *Guest) Description() abi.Description { return g.desc }

// Version returns the contract version that both sides agreed on.
func (g *Guest) Version() int { return g.version }

// ReadsMore reports whether the module may read messages beyond those of its event.
func (g *Guest) ReadsMore() bool { return g.more }

// asks reports whether the module asks for a capability.
func (g *Guest) asks(capability string) bool {
	return slices.ContainsFunc(g.desc.Capabilities, func(c abi.Capability) bool { return c.Name == capability })
}

// Module returns the name under which the module was loaded.
func (g *Guest) Module() string { return g.caller.Name() }

// Require reports an error if the module does not offer the export.
func (g *Guest) Require(export string) error {
	const want = "() -> i32"
	t, typed := g.caller.(interface{ ExportType(name string) string })
	switch {
	case typed && t.ExportType(export) != "" && t.ExportType(export) != want:
		return fmt.Errorf("guest: module %q: exports %q as %s, not %s; give the function no parameters and an i32 as result",
			g.caller.Name(), export, t.ExportType(export), want)
	case g.caller.HasExport(export):
		return nil
	}
	return fmt.Errorf("guest: module %q: has no export %q, so it cannot serve here; check which module the config names",
		g.caller.Name(), export)
}

// Encode writes a value as the module reads it.
func (g *Guest) Encode(v any) ([]byte, error) {
	out, err := g.encode(v)
	if err != nil {
		return nil, fmt.Errorf("guest: module %q: %w", g.caller.Name(), err)
	}
	return out, nil
}

func (g *Guest) encode(v any) ([]byte, error) {
	e, ok := g.packs(v)
	if !ok {
		return g.format.Marshal(v)
	}
	p, err := g.messages.pack(e, false)
	if err != nil {
		return nil, err
	}
	defer g.messages.unpack(p)
	return bytes.Join(p.parts, nil), nil
}

// packs reports whether a value is an event whose messages are encoded once and kept.
func (g *Guest) packs(v any) (*abi.Event, bool) {
	e, ok := v.(*abi.Event)
	return e, ok && g.format == wire.MessagePack && len(e.Messages) > 0
}

// Call encodes in, calls the export and decodes its output into out. An empty
// output, and one without fields, leaves out as it is.
func (g *Guest) Call(ctx context.Context, export string, in, out any) error {
	return g.CallOn(ctx, g.caller, export, in, out)
}

// CallOn is [Guest.Call] on an instance of the module.
func (g *Guest) CallOn(ctx context.Context, on Calls, export string, in, out any) error {
	if e, ok := g.packs(in); ok {
		p, err := g.messages.pack(e, g.readsLazily(e))
		if err != nil {
			return g.badInput(export, err)
		}
		defer g.messages.unpack(p)
		if p.lazy {
			ctx = messages.With(ctx, p)
		}
		output, err := on.Call(ctx, export, p.parts...)
		return g.decode(export, output, err, out, g.judges(in))
	}
	input, err := g.format.Marshal(in)
	if err != nil {
		return g.badInput(export, err)
	}
	output, err := on.Call(ctx, export, input)
	return g.decode(export, output, err, out, g.judges(in))
}

func (g *Guest) badInput(export string, err error) error {
	return fmt.Errorf("guest: module %q: %s: input: %w", g.caller.Name(), export, err)
}

// failed names the module and the export, unless the error does.
func (g *Guest) failed(export string, err error) error {
	_, trap := errors.AsType[*host.TrapError](err)
	_, refusal := errors.AsType[*host.GuestError](err)
	if trap || refusal {
		return err
	}
	return fmt.Errorf("guest: module %q: %s: %w", g.caller.Name(), export, err)
}

// decode reads what a call returned. A gate must have answered.
func (g *Guest) decode(export string, output []byte, err error, out any, gate bool) error {
	if err != nil {
		return g.failed(export, err)
	}
	if len(output) == 0 && !gate || g.format == wire.MessagePack && string(output) == emptyMap {
		return nil // no opinion
	}
	if len(output) > 0 {
		if err := g.format.Take(output, out); err != nil {
			return fmt.Errorf("guest: module %q: %s: %w: %w", g.caller.Name(), export, ErrDecode, err)
		}
	}
	if gate {
		if err := g.answered(output, out); err != nil {
			return fmt.Errorf("guest: module %q: %s: %w", g.caller.Name(), export, err)
		}
	}
	return nil
}

// emptyMap is the MessagePack answer of a guest with no opinion, which most hooks give.
const emptyMap = "\x80"

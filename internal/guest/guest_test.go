package guest_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/wire"
)

// module is a scripted guest: exports by name, and a custom section.
type module struct {
	exports map[string]func(input []byte) ([]byte, error)
	section []byte
	// deaf lets it take an input in parts without looking at it.
	deaf bool
	// items are those of the call in progress.
	items messages.Items
}

func (m *module) Name() string                { return "m" }
func (m *module) HasExport(name string) bool  { _, ok := m.exports[name]; return ok }
func (m *module) Imports(string, string) bool { return false }

func (m *module) Section(name string) []byte {
	if name == abi.ManifestSection {
		return m.section
	}
	return nil
}

func (m *module) Call(ctx context.Context, export string, input ...[]byte) ([]byte, error) {
	if m.deaf && len(input) > 1 {
		return nil, nil
	}
	m.items = messages.Of(ctx)
	return m.exports[export](bytes.Join(input, nil))
}

func answers(out []byte, err error) func([]byte) ([]byte, error) {
	return func([]byte) ([]byte, error) { return out, err }
}

func describes(t *testing.T, d abi.Description) *module {
	t.Helper()
	out, err := wire.MessagePack.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return &module{exports: map[string]func([]byte) ([]byte, error){abi.ExportDescribe: answers(out, nil)}}
}

func description() abi.Description {
	return abi.Description{Name: "g", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1}}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	refusal := errors.New("no")
	old, young, badName, badRange := description(), description(), description(), description()
	old.ABI = abi.VersionRange{Min: 0, Max: 0}
	young.ABI = abi.VersionRange{Min: 7, Max: 9}
	badName.Name = "Übel\x1b[2J"
	badRange.ABI = abi.VersionRange{Min: 3, Max: 2}
	tooMany := description()
	tooMany.Hooks = make([]abi.Hook, 65)
	for name, tc := range map[string]struct {
		module *module
		is     error
		says   string
	}{
		"no describe": {&module{}, guest.ErrNoDescribe, `add a custom section "mortise"`},
		"describe refuses": {
			&module{exports: map[string]func([]byte) ([]byte, error){abi.ExportDescribe: answers(nil, refusal)}}, refusal, "describe",
		},
		"describe returns nothing": {
			&module{exports: map[string]func([]byte) ([]byte, error){abi.ExportDescribe: answers([]byte(" "), nil)}},
			guest.ErrDescription, "returned nothing",
		},
		"describe returns garbage": {
			&module{exports: map[string]func([]byte) ([]byte, error){abi.ExportDescribe: answers([]byte{0xdf, 0xff, 0xff, 0xff, 0xff}, nil)}},
			guest.ErrDescription, "",
		},
		"too new":        {describes(t, young), guest.ErrVersion, "the module speaks ABI 7 to 9, this host 1 to 1; use a newer mortise"},
		"zero range":     {describes(t, old), guest.ErrDescription, "abi range 0 to 0"},
		"reversed range": {describes(t, badRange), guest.ErrDescription, "abi range 3 to 2"},
		"bad name":       {describes(t, badName), guest.ErrDescription, `must match ^[a-z0-9]`},
		"too many hooks": {describes(t, tooMany), guest.ErrDescription, "65 hooks are more than the 64"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := guest.Open(t.Context(), tc.module)
			if !errors.Is(err, tc.is) || !strings.Contains(err.Error(), tc.says) {
				t.Fatalf("error %v, want %v saying %q", err, tc.is, tc.says)
			}
			if !strings.HasPrefix(err.Error(), `guest: module "m": `) || strings.ContainsAny(err.Error(), "\x1b\n") {
				t.Errorf("error %q does not name the module in one clean line", err)
			}
		})
	}
}

func TestOpenReadsTheSectionFirst(t *testing.T) {
	t.Parallel()
	g, err := guest.Open(t.Context(), &module{section: []byte(`{"name":"g","version":"2","abi":{"min":1,"max":4}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if g.Description().Version != "2" || g.Version() != 1 {
		t.Errorf("version %q, contract %d", g.Description().Version, g.Version())
	}
}

func TestCallSpeaksTheGuestsFormat(t *testing.T) {
	t.Parallel()
	for name, section := range map[string][]byte{
		"json":    []byte(`{"name":"g","version":"1","abi":{"min":1,"max":1}}`),
		"msgpack": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := describes(t, description())
			m.section = section
			m.exports["echo"] = func(in []byte) ([]byte, error) {
				if isJSON := in[0] == '{'; isJSON != (name == "json") {
					t.Errorf("input starts with %q", in[0])
				}
				return in, nil
			}
			g, err := guest.Open(t.Context(), m)
			if err != nil {
				t.Fatal(err)
			}
			in, out := abi.Decision{Allowed: true, Reason: "allowed"}, abi.Decision{}
			if err := g.Call(t.Context(), "echo", in, &out); err != nil || in != out {
				t.Errorf("got %+v, %v", out, err)
			}
		})
	}
}

func TestCallTellsAnUndecodableAnswer(t *testing.T) {
	t.Parallel()
	m := describes(t, description())
	m.exports["bad"] = answers([]byte{0xdf, 0x7f, 0xff, 0xff, 0xff, 0xa1, 'k'}, nil)
	g, err := guest.Open(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	var out abi.Reply
	if err := g.Call(t.Context(), "bad", nil, &out); !errors.Is(err, guest.ErrDecode) {
		t.Errorf("error %v, want ErrDecode", err)
	}
}

func TestCheckConfig(t *testing.T) {
	t.Parallel()
	schema := map[string]any{
		"type": "object", "additionalProperties": false,
		"properties": map[string]any{"limit": map[string]any{"type": "integer", "minimum": int64(1)}},
	}
	for name, tc := range map[string]struct {
		schema, config any
		is             error
		says           string
	}{
		"no schema":     {nil, map[string]any{"x": true}, nil, ""},
		"fits":          {schema, map[string]any{"limit": int64(3)}, nil, ""},
		"absent":        {schema, nil, nil, ""},
		"unknown key":   {schema, map[string]any{"limt": int64(3)}, guest.ErrConfig, "limt"},
		"wrong type":    {schema, map[string]any{"limit": "three"}, guest.ErrConfig, "limit"},
		"too small":     {schema, map[string]any{"limit": int64(0)}, guest.ErrConfig, "minimum"},
		"broken schema": {map[string]any{"type": int64(7)}, nil, guest.ErrDescription, ""},
		"schema that reads a file": {
			map[string]any{"$ref": "file:///etc/passwd"}, nil, guest.ErrDescription, "may not refer to",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := description()
			d.ConfigSchema = tc.schema
			g, err := guest.Open(t.Context(), describes(t, d))
			if err != nil {
				t.Fatal(err)
			}
			err = g.CheckConfig(tc.config)
			if !errors.Is(err, tc.is) || (err != nil && !strings.Contains(err.Error(), tc.says)) {
				t.Fatalf("error %v, want %v saying %q", err, tc.is, tc.says)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("error has more than one line: %q", err)
			}
		})
	}
}

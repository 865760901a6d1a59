package guest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/wire"
)

// gateGuest describes a gate, in an encoding.
func gateGuest(t *testing.T, f wire.Format, mode abi.Mode) (*guest.Guest, *module) {
	t.Helper()
	d := description()
	d.Hooks = []abi.Hook{{Phase: abi.ToolGate, Mode: mode}, {Phase: abi.StepEnd, Mode: mode}}
	out, err := f.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	m := &module{exports: map[string]func([]byte) ([]byte, error){abi.ExportDescribe: answers(out, nil)}}
	g, err := guest.Open(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return g, m
}

// A gate that answers nothing that the host knows fails. Only an empty map is no opinion.
func TestGateMustAnswer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		format wire.Format
		output string
		want   string // of the error, empty for none
	}{
		{"empty map", wire.JSON, "{}", ""},
		{"empty map with blanks", wire.JSON, " { \n} ", ""},
		{"known field", wire.JSON, `{"gate":null}`, ""},
		{"known and unknown", wire.JSON, `{"gates":{},"updates":[]}`, ""},
		{"decision", wire.JSON, `{"gate":{"action":"block"}}`, ""},
		{"nothing", wire.JSON, "", "no output; a gate answers with the field gate"},
		{"null", wire.JSON, "null", "nil; "},
		{"misspelt", wire.JSON, `{"gates":{"action":"block"}}`, `fields "gates"; a gate answers with the field gate`},
		{"two", wire.JSON, `{"gates":1,"Effect":2}`, `fields "Effect, gates"`},
		{"empty map", wire.MessagePack, "\x80", ""},
		{"long empty map", wire.MessagePack, "\xde\x00\x00", ""},
		{"known field", wire.MessagePack, "\x81\xa4gate\xc0", ""},
		{"nothing", wire.MessagePack, "", "no output"},
		{"nil", wire.MessagePack, "\xc0", "nil; "},
		{"misspelt", wire.MessagePack, "\x81\xa5gates\x80", `fields "gates"`},
		{"hostile", wire.MessagePack, "\x81\xa3\x1b[2\x01", `fields "\x1b[2"`},
	}
	for _, test := range tests {
		t.Run(string(test.format)+" "+test.name, func(t *testing.T) {
			t.Parallel()
			g, m := gateGuest(t, test.format, abi.ModeGate)
			m.exports[abi.ExportOnPhase] = answers([]byte(test.output), nil)
			for _, messages := range [][]abi.Message{nil, {{ID: "m", Role: abi.RoleUser}}} {
				var reply *abi.Reply
				err := g.Call(t.Context(), abi.ExportOnPhase, &abi.Event{Phase: abi.ToolGate, Messages: messages}, &reply)
				switch {
				case test.want == "" && err != nil:
					t.Errorf("error %v", err)
				case test.want != "" && (!errors.Is(err, guest.ErrNoAnswer) || !strings.Contains(err.Error(), test.want)):
					t.Errorf("error %v, want one with %q", err, test.want)
				}
			}
		})
	}
}

// A hook that decides about nothing may answer nothing.
func TestOthersNeedNotAnswer(t *testing.T) {
	t.Parallel()
	gate, m := gateGuest(t, wire.JSON, abi.ModeGate)
	observer, n := gateGuest(t, wire.JSON, abi.ModeTransform)
	for _, output := range []string{"", `{"gates":1}`} {
		m.exports[abi.ExportOnPhase], n.exports[abi.ExportOnPhase] = answers([]byte(output), nil), answers([]byte(output), nil)
		for what, err := range map[string]error{
			"another phase":   gate.Call(t.Context(), abi.ExportOnPhase, &abi.Event{Phase: abi.StepEnd}, new(*abi.Reply)),
			"an action":       gate.Call(t.Context(), abi.ExportOnPhase, &abi.Event{Phase: abi.ToolGate, Action: &abi.Action{}}, new(*abi.Reply)),
			"an effect":       gate.Call(t.Context(), abi.ExportOnPhase, &abi.Event{Phase: abi.ToolGate, Effect: &abi.Effect{}}, new(*abi.Reply)),
			"another mode":    observer.Call(t.Context(), abi.ExportOnPhase, &abi.Event{Phase: abi.ToolGate}, new(*abi.Reply)),
			"another request": gate.Call(t.Context(), abi.ExportOnPhase, &abi.ToolRequest{}, new(abi.ToolReply)),
		} {
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
}

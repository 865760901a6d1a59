package guest_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/wire"
)

// lazyGuest opens a guest whose hooks ask for messages at phases lazily or not.
func lazyGuest(t *testing.T, hooks ...abi.Hook) (*guest.Guest, *module) {
	t.Helper()
	d := description()
	d.Hooks = hooks
	m := describes(t, d)
	g, err := guest.Open(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return g, m
}

func lazyHook(p abi.Phase) abi.Hook {
	return abi.Hook{Phase: p, Mode: abi.ModeObserve, Messages: abi.ViewAll, LazyMessages: true}
}

// read is what a guest reads of messages.
func (m *module) read(from, to int) ([]byte, bool) {
	n, ok := m.items.Size(uint32(from), uint32(to))
	if !ok {
		return nil, false
	}
	out := make([]byte, n)
	m.items.Copy(out, uint32(from), uint32(to))
	return out, true
}

// TestLazyMessages: the event is as it would be, with the index and without the messages,
// and the guest reads of them what it would have got: of those that are kept, and of
// those that are not.
func TestLazyMessages(t *testing.T) {
	t.Parallel()
	g, m := lazyGuest(t, lazyHook(abi.AfterToolExecute))
	e := fullEvent()
	e.Action, e.Effect = nil, nil // those are for handlers
	for n := range 60 {
		e.Messages = append(e.Messages, abi.Message{ID: fmt.Sprint(n), Role: abi.RoleTool, Content: []abi.ContentBlock{abi.Text(strings.Repeat("x", 10*n))}})
		if n%7 == 0 {
			e.Messages = append(e.Messages, abi.Message{Role: abi.RoleUser}) // without an id nothing is kept
		}
	}
	for round := range 3 {
		called := 0
		m.exports[abi.ExportOnPhase] = func(input []byte) ([]byte, error) {
			called++
			bare := *e
			bare.Messages = nil
			want, err := wire.MessagePack.Marshal(&bare)
			if err != nil {
				return nil, err
			}
			if got := withoutIndex(t, input, e.Messages); !bytes.Equal(got, want) {
				t.Errorf("round %d:\n got %q\nwant %q", round, got, want)
			}
			for from := range len(e.Messages) + 1 {
				for _, to := range []int{from, from + 1, from + 5, len(e.Messages)} {
					if got, ok := m.read(from, to); ok != (to <= len(e.Messages)) || ok && !bytes.Equal(got, encoded(t, e.Messages[from:to])) {
						t.Errorf("round %d: %d to %d: %d bytes, %v", round, from, to, len(got), ok)
					}
				}
			}
			for _, wrong := range [][2]int{{2, 1}, {len(e.Messages) + 1, len(e.Messages) + 1}, {0, math.MaxUint32}, {math.MaxUint32, math.MaxUint32}} {
				if _, ok := m.read(wrong[0], wrong[1]); ok {
					t.Errorf("messages %d to %d are there", wrong[0], wrong[1])
				}
			}
			return nil, nil
		}
		if err := g.Call(t.Context(), abi.ExportOnPhase, e, new(abi.Reply)); err != nil || called != 1 {
			t.Fatal(called, err)
		}
		e.Messages[round].Content = []abi.ContentBlock{abi.Text("changed")}
	}
}

func encoded(t *testing.T, messages []abi.Message) []byte {
	t.Helper()
	var out []byte
	for i := range messages {
		one, err := wire.MessagePack.Marshal(&messages[i])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, one...)
	}
	return out
}

// TestLazyMessages_not: who gets the messages with the event, as if nothing had been asked.
func TestLazyMessages_not(t *testing.T) {
	t.Parallel()
	eager := abi.Hook{Phase: abi.StepEnd, Mode: abi.ModeObserve, Messages: abi.ViewLast}
	g, m := lazyGuest(t, lazyHook(abi.StepStart), eager)
	message := []abi.Message{{ID: "m", Role: abi.RoleUser}}
	for what, e := range map[string]*abi.Event{
		"another phase":               {Phase: abi.RunStart, Messages: message},
		"a phase of an eager hook":    {Phase: abi.StepEnd, Messages: message},
		"an action":                   {Phase: abi.StepStart, Messages: message, Action: &abi.Action{Key: "a"}},
		"an effect":                   {Phase: abi.StepStart, Messages: message, Effect: &abi.Effect{Key: "e"}},
		"an event without messages":   {Phase: abi.StepStart},
		"an event of no phase at all": {Messages: message},
	} {
		want, err := g.Encode(e) // as messages_get answers, too
		if err != nil {
			t.Fatal(err)
		}
		m.exports[abi.ExportOnPhase] = func(input []byte) ([]byte, error) {
			if !bytes.Equal(input, want) || m.items != nil {
				t.Errorf("%s: %q", what, input)
			}
			return nil, nil
		}
		if err := g.Call(t.Context(), abi.ExportOnPhase, e, new(abi.Reply)); err != nil {
			t.Error(err)
		}
	}
}

// TestLazyMessages_json: a guest in JSON has no index to read by, and gets an error.
func TestLazyMessages_json(t *testing.T) {
	t.Parallel()
	d := description()
	d.Hooks = []abi.Hook{lazyHook(abi.StepStart)}
	out, err := wire.JSON.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	_, err = guest.Open(t.Context(), &module{exports: map[string]func([]byte) ([]byte, error){abi.ExportDescribe: answers(out, nil)}})
	if !errors.Is(err, guest.ErrDescription) || !strings.Contains(err.Error(), "hook 0: lazy_messages needs MessagePack; leave it out") {
		t.Errorf("error %v", err)
	}
}

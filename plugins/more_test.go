package plugins_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

// TestGuestReadsBeyondItsView: the guest asks for no messages and fetches the
// second and third of three.
func TestGuestReadsBeyondItsView(t *testing.T) {
	t.Parallel()
	set, err := load(t, newHost(t), plugins.Entry{Module: host.Spec{Path: filepath.Join("testdata", "more.wasm")}})
	if err != nil {
		t.Fatal(err)
	}
	var record phases.Record
	rt, err := phases.New(phases.Config{Plugins: set.Plugins(), Record: func(r phases.Record) { record = r }})
	if err != nil {
		t.Fatal(err)
	}
	var messages []abi.Message
	for _, text := range []string{"alpha", "beta", "gamma"} {
		messages = append(messages, abi.Message{ID: text, Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("I am " + text)}})
	}
	frame := phases.Frame{Phase: abi.StepStart, Step: 1, Messages: messages, Run: abi.RunIdentity{ThreadID: "t", RunID: "r"}}
	if _, err := rt.Fire(t.Context(), rt.NewState(nil), frame); err != nil {
		t.Fatal(err)
	}
	if record.MessagesSent != 0 {
		t.Errorf("%d messages were sent unasked", record.MessagesSent)
	}
	for want, there := range map[string]bool{"I am alpha": false, "I am beta": true, "I am gamma": true, `"messages_total":3`: true} {
		if strings.Contains(record.Err, want) != there {
			t.Errorf("the guest read %q: %v, want %v", want, !there, there)
		}
	}
}

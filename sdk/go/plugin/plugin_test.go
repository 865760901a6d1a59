package plugin_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

// counter is a plugin that counts messages; the tests drive it as a host would.
func counter() plugin.Plugin {
	return plugin.Plugin{
		Description: mortise.Description{Name: "counter", Version: "1.0.0", Hooks: []mortise.Hook{{Phase: mortise.StepEnd, Mode: mortise.ModeObserve}}},
		OnPhase: func(e *mortise.Event) (*mortise.Reply, error) {
			switch e.Phase {
			case mortise.RunEnd:
				return nil, nil
			case mortise.RunStart:
				return nil, errors.New("not ready")
			case mortise.StepStart:
				panic("on purpose")
			case mortise.ToolGate:
				none := make([]int, e.Step)
				return nil, fmt.Errorf("%d", none[e.Step])
			default:
			}
			return &mortise.Reply{Updates: []mortise.Update{{Key: "n", Op: mortise.OpAdd, Value: e.MessagesTotal}}}, nil
		},
		CallTool: func(c *mortise.ToolRequest) (*mortise.ToolReply, error) {
			if c.Name == "nothing" {
				return nil, nil
			}
			return &mortise.ToolReply{Status: mortise.ToolSuccess, Data: c.Arguments}, nil
		},
	}
}

func input(t *testing.T, v mortise.Marshaler) []byte {
	t.Helper()
	data, err := mortise.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	p := counter()
	out, err := p.Call(mortise.ExportDescribe, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got mortise.Description
	if err := mortise.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	want := p.Description
	want.ABI = mortise.VersionRange{Min: 1, Max: 1}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if p.Description.ABI != (mortise.VersionRange{}) {
		t.Error("the registered description was changed")
	}
	p.Description.ABI = mortise.VersionRange{Min: 1, Max: 7}
	if out, err = p.Call(mortise.ExportDescribe, nil); err != nil {
		t.Fatal(err)
	}
	if err := mortise.Unmarshal(out, &got); err != nil || got.ABI.Max != 7 {
		t.Errorf("range %+v, error %v: the guest's own range is not kept", got.ABI, err)
	}
}

func TestOnPhase(t *testing.T) {
	t.Parallel()
	p := counter()
	for phase, want := range map[mortise.Phase]string{
		mortise.StepEnd:   "\x81\xa7updates\x91\x83\xa3key\xa1n\xa2op\xa3add\xa5value\x05",
		mortise.RunEnd:    "\x80",
		mortise.RunStart:  "error: not ready",
		mortise.StepStart: "error: guest panicked: on purpose",
		mortise.ToolGate:  "error: guest panicked: runtime error: index out of range [0] with length 0",
	} {
		out, err := p.Call(mortise.ExportOnPhase, input(t, &mortise.Event{Phase: phase, MessagesTotal: 5}))
		got := string(out)
		if err != nil {
			got = "error: " + err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", phase, got, want)
		}
	}
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	p := counter()
	out, err := p.Call(mortise.ExportCallTool, input(t, &mortise.ToolRequest{ID: "c1", Name: "echo", Arguments: false}))
	if err != nil {
		t.Fatal(err)
	}
	var got mortise.ToolReply
	if err := mortise.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if want := (mortise.ToolReply{Status: mortise.ToolSuccess, Data: false}); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if _, err := p.Call(mortise.ExportCallTool, input(t, &mortise.ToolRequest{Name: "nothing"})); err == nil {
		t.Error("a tool that answered nothing gave no error")
	}
}

func TestMisuse(t *testing.T) {
	t.Parallel()
	p := counter()
	for name, call := range map[string]func() ([]byte, error){
		"unknown export": func() ([]byte, error) { return p.Call("admit", nil) },
		"empty input":    func() ([]byte, error) { return p.Call(mortise.ExportOnPhase, nil) },
		"broken input":   func() ([]byte, error) { return p.Call(mortise.ExportOnPhase, []byte("\xdf\xff\xff\xff\xff")) },
		"no tools":       func() ([]byte, error) { return new(plugin.Plugin).Call(mortise.ExportCallTool, []byte{0x80}) },
		"nil plugin":     func() ([]byte, error) { return (*plugin.Plugin)(nil).Call(mortise.ExportDescribe, nil) },
		"not a number": func() ([]byte, error) {
			q := plugin.Plugin{OnPhase: func(*mortise.Event) (*mortise.Reply, error) {
				return &mortise.Reply{Updates: []mortise.Update{{Value: func() {}}}}, nil
			}}
			return q.Call(mortise.ExportOnPhase, []byte{0x80})
		},
	} {
		if out, err := call(); err == nil || len(out) > 0 {
			t.Errorf("%s: %q, error %v, want an error", name, out, err)
		}
	}
	var tools plugin.Plugin
	if out, err := tools.Call(mortise.ExportOnPhase, nil); err != nil || string(out) != "\x80" {
		t.Errorf("a plugin without OnPhase answered %q, error %v, want no opinion", out, err)
	}
}

// TestBrokenMessage: a message that cannot be read fails the call, whatever the hook
// made of it.
func TestBrokenMessage(t *testing.T) {
	t.Parallel()
	p := plugin.Plugin{OnPhase: func(e *mortise.Event) (*mortise.Reply, error) {
		messages := e.Messages
		e.Messages = nil
		return nil, fmt.Errorf("hook read role %q: %w", messages[0].Role(), errors.ErrUnsupported)
	}}
	reply, err := p.Call(mortise.ExportOnPhase, []byte("\x81\xa8messages\x91\x82\xa2id\xa1a\xa4role\x07"))
	if err == nil || !strings.Contains(err.Error(), "of a message: ") {
		t.Errorf("reply %q, error %v, want one about the message", reply, err)
	}
}

// TestRegister is the only test that touches what the module registers.
func TestRegister(t *testing.T) {
	t.Parallel()
	t.Cleanup(plugin.Unregister)
	if _, err := plugin.Call(mortise.ExportDescribe, nil); err == nil || !strings.Contains(err.Error(), "Register") {
		t.Errorf("error %v names no hint", err)
	}
	plugin.Register(counter())
	if _, err := plugin.Call(mortise.ExportDescribe, nil); err != nil {
		t.Error(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second Register went through")
		}
	}()
	plugin.Register(counter())
}

func Example() {
	p := plugin.Plugin{
		Description: mortise.Description{Name: "polite", Version: "1.0.0"},
		OnPhase: func(e *mortise.Event) (*mortise.Reply, error) {
			tone := mortise.StringOr(e.Config, "tone", "friendly")
			return &mortise.Reply{Effects: []mortise.Effect{{
				Type:    mortise.EffectAddContext,
				Context: &mortise.ContextMessage{Key: "tone", Content: []mortise.ContentBlock{mortise.Text("Be " + tone + ".")}},
			}}}, nil
		},
	}
	// A guest calls plugin.Register(p) from init. A test drives it like this:
	event, err := mortise.Marshal(&mortise.Event{Phase: mortise.BeforeInference, Config: map[string]any{"tone": "brief"}})
	if err != nil {
		fmt.Println(err)
	}
	out, err := p.Call(mortise.ExportOnPhase, event)
	if err != nil {
		fmt.Println(err)
	}
	var reply mortise.Reply
	if err := mortise.Unmarshal(out, &reply); err != nil {
		fmt.Println(err)
	}
	fmt.Println(reply.Effects[0].Context.Content[0].Text)
	// Output:
	// Be brief.
}

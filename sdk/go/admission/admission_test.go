package admission_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/admission"
)

func guest(answer func(*mortise.AdmitRequest) (*mortise.Decision, error)) *admission.Policy {
	return &admission.Policy{Description: mortise.Description{Name: "g", Version: "1", Policies: []string{"p"}}, Admit: answer}
}

func Example() {
	g := admission.Policy{
		Description: mortise.Description{Name: "short", Version: "1.0.0"},
		Admit: func(r *mortise.AdmitRequest) (*mortise.Decision, error) {
			return &mortise.Decision{Allowed: r.AttemptCount == 0, Reason: mortise.ReasonAttemptLimit}, nil
		},
	}
	// A guest calls admission.Register(g) from init. A test drives it like this:
	request, err := mortise.Marshal(&mortise.AdmitRequest{AttemptCount: 1})
	if err != nil {
		fmt.Println(err)
	}
	out, err := g.Call(mortise.ExportAdmit, request)
	if err != nil {
		fmt.Println(err)
	}
	var answer mortise.Decision
	if err := mortise.Unmarshal(out, &answer); err != nil {
		fmt.Println(err)
	}
	fmt.Println(answer.Allowed, answer.Reason)
	// Output:
	// false session_attempt_limit
}

func TestErrors(t *testing.T) {
	t.Parallel()
	for want, g := range map[string]*admission.Policy{
		"no way":                     guest(func(*mortise.AdmitRequest) (*mortise.Decision, error) { return nil, errors.New("no way") }),
		"guest panicked: on purpose": guest(func(*mortise.AdmitRequest) (*mortise.Decision, error) { panic("on purpose") }),
		"neither an answer nor":      guest(func(*mortise.AdmitRequest) (*mortise.Decision, error) { return nil, nil }),
		"Admit is nil":               guest(nil),
		"nothing is registered":      nil,
	} {
		if _, err := g.Call(mortise.ExportAdmit, []byte{0x80}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	g := guest(func(*mortise.AdmitRequest) (*mortise.Decision, error) { return &mortise.Decision{}, nil })
	if _, err := g.Call(mortise.ExportOnPhase, []byte{0x80}); err == nil {
		t.Error("an export of another kind was answered")
	}
	if _, err := g.Call(mortise.ExportAdmit, []byte("\x81")); err == nil {
		t.Error("a broken request was answered")
	}
}

// TestRegister is the only test that touches what the module registers.
func TestRegister(t *testing.T) {
	t.Parallel()
	t.Cleanup(admission.Unregister)
	if _, err := admission.Call(mortise.ExportDescribe, nil); err == nil || !strings.Contains(err.Error(), "Register") {
		t.Errorf("error %v names no hint", err)
	}
	admission.Register(*guest(nil))
	out, err := admission.Call(mortise.ExportDescribe, nil)
	if err != nil {
		t.Fatal(err)
	}
	var got mortise.Description
	if err := mortise.Unmarshal(out, &got); err != nil || got.Name != "g" || got.ABI != (mortise.VersionRange{Min: 1, Max: 1}) {
		t.Errorf("%+v, error %v", got, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second Register went through")
		}
	}()
	admission.Register(*guest(nil))
}

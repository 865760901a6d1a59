// Package admission registers a guest that reports whether a compaction may start.
// Import it in one module only with neither plugin nor summarizer: a module is
// one of the three.
//
// # Concurrency
//
// The function is called one at a time, and keeps nothing between calls.
//
// # Errors
//
// An error or a panic of the function becomes the error text of the call.
package admission

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/internal/rt"
)

// Policy is a guest of this kind.
type Policy struct {
	// Description is what the guest is and which policies it knows. A zero ABI
	// range is filled in.
	Description mortise.Description
	// Admit answers a request. A nil answer is an error.
	Admit func(*mortise.AdmitRequest) (*mortise.Decision, error)
}

var registered *Policy

// Register sets the guest of this module. Call it once, from init.
func Register(x Policy) {
	if registered != nil {
		panic("admission: Register was called twice")
	}
	registered = &x
}

// Call answers an export as the module would, natively: it decodes the input,
// calls the registered guest and encodes what it answers.
func Call(export string, input []byte) ([]byte, error) {
	if registered == nil {
		return nil, errNotRegistered
	}
	return registered.Call(export, input)
}

// Call answers an export as a module with this guest would.
func (x *Policy) Call(export string, input []byte) ([]byte, error) {
	return rt.Call(x.handler(export), input)
}

const errNotRegistered = rt.Error("admission: nothing is registered; call admission.Register from init")

func (x *Policy) handler(export string) rt.Handler {
	if x == nil {
		return func(string, *mortise.Encoder) error { return errNotRegistered }
	}
	switch export {
	case mortise.ExportDescribe:
		return x.describe
	case mortise.ExportAdmit:
		return x.answer
	}
	return func(string, *mortise.Encoder) error { return rt.Error("admission: no export " + export) }
}

func (x *Policy) describe(_ string, out *mortise.Encoder) error {
	rt.Describe(x.Description, out)
	return nil
}

func (x *Policy) answer(input string, out *mortise.Encoder) error {
	if x.Admit == nil {
		return rt.Error("admission: Admit is nil")
	}
	var request mortise.AdmitRequest
	if err := mortise.UnmarshalString(input, &request); err != nil {
		return err
	}
	answer, err := x.Admit(&request)
	if err != nil {
		return err
	}
	if answer == nil {
		return rt.Error("admission: Admit returned neither an answer nor an error")
	}
	answer.MarshalTo(out)
	return nil
}

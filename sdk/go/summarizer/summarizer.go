// Package summarizer registers a guest that summarizes a range of a
// conversation. Import it in one module only with neither plugin nor admission:
// a module is one of the three.
//
// # Concurrency
//
// The function is called one at a time, and keeps nothing between calls.
//
// # Errors
//
// An error or a panic of the function becomes the error text of the call.
package summarizer

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/internal/rt"
)

// Summarizer is a guest of this kind.
type Summarizer struct {
	// Description is what the guest is and which policies it knows. A zero ABI
	// range is filled in.
	Description mortise.Description
	// Summarize answers a request. A nil answer is an error.
	Summarize func(*mortise.SummarizeRequest) (*mortise.Summary, error)
}

var registered *Summarizer

// Register sets the guest of this module. Call it once, from init.
func Register(x Summarizer) {
	if registered != nil {
		panic("summarizer: Register was called twice")
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
func (x *Summarizer) Call(export string, input []byte) ([]byte, error) {
	return rt.Call(x.handler(export), input)
}

const errNotRegistered = rt.Error("summarizer: nothing is registered; call summarizer.Register from init")

func (x *Summarizer) handler(export string) rt.Handler {
	if x == nil {
		return func(string, *mortise.Encoder) error { return errNotRegistered }
	}
	switch export {
	case mortise.ExportDescribe:
		return x.describe
	case mortise.ExportSummarize:
		return x.answer
	}
	return func(string, *mortise.Encoder) error { return rt.Error("summarizer: no export " + export) }
}

func (x *Summarizer) describe(_ string, out *mortise.Encoder) error {
	rt.Describe(x.Description, out)
	return nil
}

func (x *Summarizer) answer(input string, out *mortise.Encoder) error {
	if x.Summarize == nil {
		return rt.Error("summarizer: Summarize is nil")
	}
	var request mortise.SummarizeRequest
	if err := mortise.UnmarshalString(input, &request); err != nil {
		return err
	}
	answer, err := x.Summarize(&request)
	if err != nil {
		return err
	}
	if answer == nil {
		return rt.Error("summarizer: Summarize returned neither an answer nor an error")
	}
	answer.MarshalTo(out)
	return nil
}

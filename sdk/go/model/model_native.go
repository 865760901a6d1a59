//go:build !wasip1

package model

import "github.com/mortise-dev/mortise/sdk/go/capability"

var answers func([]byte) ([]byte, error)

// Provide sets the model of a native test, and returns a function that takes it back.
// Without it everything is denied. It does not exist in a guest. Tests that use it do not
// run in parallel.
func Provide(answer func(request []byte) ([]byte, error)) (restore func()) {
	before := answers
	answers = answer
	return func() { answers = before }
}

func ask(request []byte) ([]byte, error) {
	switch {
	case answers == nil:
		return nil, &capability.Error{Code: capability.Denied, Text: "denied: model_ask: give the test a model with model.Provide"}
	case len(request) == 0:
		return nil, &capability.Error{Code: capability.Invalid, Text: "invalid: model_ask: the request is empty"}
	}
	return answers(request)
}

//go:build !wasip1

package model

import (
	"sync"

	"github.com/mortise-dev/mortise/sdk/go/capability"
)

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

// Role is a model of a native test.
type Role struct {
	Info RoleInfo
	// Answer answers a question that fits the window.
	Answer func(q Question) (string, error)
}

var (
	mu    sync.Mutex // guards roles
	roles = map[string]Role{}
)

// ProvideRole gives a native test a model by role, and returns a function that takes it back.
// As the host does, it refuses a question that does not fit the window, at three bytes a
// token. It does not exist in a guest. Tests that use other names may run in parallel.
func ProvideRole(name string, r Role) (restore func()) {
	mu.Lock()
	defer mu.Unlock()
	before, had := roles[name]
	roles[name] = r
	return func() {
		mu.Lock()
		defer mu.Unlock()
		delete(roles, name)
		if had {
			roles[name] = before
		}
	}
}

func role(name string) (Role, error) {
	mu.Lock()
	defer mu.Unlock()
	r, ok := roles[name]
	if !ok {
		return r, &capability.Error{Code: capability.Denied, Text: "denied: the role " + name + " is not granted; give it to the test with model.ProvideRole"}
	}
	return r, nil
}

func info(name string) (RoleInfo, error) {
	r, err := role(name)
	return r.Info, err
}

func chat(q Question) (string, error) {
	r, err := role(q.Role)
	if err != nil {
		return "", err
	}
	if q.Prompt == "" {
		return "", &capability.Error{Code: capability.Invalid, Text: "invalid: model_chat: the prompt is empty"}
	}
	if q.AnswerTokens <= 0 || q.AnswerTokens > r.Info.AnswerTokens {
		q.AnswerTokens = r.Info.AnswerTokens
	}
	if int64(len(q.System)+len(q.Prompt))/3+q.AnswerTokens > r.Info.WindowTokens {
		return "", &capability.Error{Code: capability.TooLarge, Text: "too large: model_chat: the question does not fit the model's window"}
	}
	return r.Answer(q)
}

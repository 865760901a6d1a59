//go:build !wasip1

package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/model"
)

// The tests share the model of the package, so they do not run in parallel.

func TestAsk(t *testing.T) {
	if _, err := model.Ask([]byte("hello")); !errors.Is(err, capability.Denied) {
		t.Errorf("error %v", err)
	}
	defer model.Provide(func([]byte) ([]byte, error) { return nil, &capability.Error{Code: capability.Timeout} })()
	if _, err := model.Ask(nil); !errors.Is(err, capability.Invalid) {
		t.Errorf("error %v", err)
	}
	if _, err := model.Ask([]byte("hello")); !errors.Is(err, capability.Timeout) {
		t.Errorf("error %v", err)
	}
}

func Example() {
	defer model.Provide(func(request []byte) ([]byte, error) { return append([]byte("You said "), request...), nil })()
	answer, err := model.Ask([]byte("hello"))
	fmt.Println(string(answer), err)
	// Output: You said hello <nil>
}

func TestChat(t *testing.T) {
	if _, err := model.Chat(model.Question{Role: "writer", Prompt: "x"}); !errors.Is(err, capability.Denied) {
		t.Errorf("error %v", err)
	}
	if _, err := model.Info("writer"); !errors.Is(err, capability.Denied) {
		t.Errorf("error %v", err)
	}
	window := model.RoleInfo{WindowTokens: 100, AnswerTokens: 40}
	defer model.ProvideRole("writer", model.Role{Info: window, Answer: func(q model.Question) (string, error) {
		return fmt.Sprintf("%s %s %d", q.System, q.Prompt, q.AnswerTokens), nil
	}})()
	if got, err := model.Chat(model.Question{Role: "writer", System: "s", Prompt: "p", AnswerTokens: 99}); err != nil || got != "s p 40" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := model.Info("writer"); err != nil || got != window {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := model.Chat(model.Question{Role: "writer", Prompt: strings.Repeat("x", 183)}); !errors.Is(err, capability.TooLarge) {
		t.Errorf("error %v", err)
	}
	if _, err := model.Chat(model.Question{Role: "writer"}); !errors.Is(err, capability.Invalid) {
		t.Errorf("error %v", err)
	}
}

// TestHead: what a guest writes is JSON as the host reads it, and the other way round.
func TestHead(t *testing.T) {
	t.Parallel()
	var got map[string]any
	head := model.AppendHead(nil, model.Question{Role: `a"b`, System: "line\n\x01\xff\\é", AnswerTokens: -7})
	if err := json.Unmarshal(head, &got); err != nil || got["role"] != `a"b` || got["system"] != "line\n\x01\ufffd\\é" || got["answer_tokens"] != float64(-7) {
		t.Errorf("%s: %v, %v", head, got, err)
	}
	want := model.RoleInfo{WindowTokens: 1, AnswerTokens: 2, LeftTokens: 3, LeftQuestions: 4}
	if info := model.ReadInfo(`{"window_tokens":1,"answer_tokens": 2,"left_tokens":3,"new":{},"left_questions":4}`); info != want {
		t.Errorf("%+v", info)
	}
	if info := model.ReadInfo(`{"window_tokens":"1","left_tokens":`); info != (model.RoleInfo{}) {
		t.Errorf("%+v", info)
	}
}

//go:build !wasip1

package model_test

import (
	"errors"
	"fmt"
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

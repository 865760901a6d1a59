package capability_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/sdk/go/capability"
)

func TestError(t *testing.T) {
	t.Parallel()
	for code, want := range map[capability.Code]string{
		capability.Denied: "denied", capability.Quota: "quota", capability.TooLarge: "too large",
		capability.Invalid: "invalid", capability.Failed: "failed", capability.Timeout: "timeout", -77: "code -77",
	} {
		var err error = &capability.Error{Code: code}
		if err.Error() != want || !errors.Is(err, code) || errors.Is(err, capability.Code(-99)) {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func ExampleError() {
	var err error = &capability.Error{Code: capability.Quota, Text: "quota: kv_set: the quota is used up"}
	if errors.Is(err, capability.Quota) {
		fmt.Println(err)
	}
	// Output: quota: kv_set: the quota is used up
}

package engine_test

import (
	"testing"

	"github.com/mortise-dev/mortise/internal/engine"
)

// TestTail: an error ends with what the guest wrote, without the stack trace of its runtime.
func TestTail(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "", "broken": "; stderr: broken",
		"fatal error: out of memory\n\nruntime stack:\nruntime.throw({0x1, 0x2})\n\ngoroutine 1 [running]:\nmain.main()": "; stderr: fatal error: out of memory",
		"panic: no\n\ngoroutine 1 [running]:\nmain.main()\n":                                                             "; stderr: panic: no",
	} {
		if got := engine.TailOf(text); got != want {
			t.Errorf("%q ends with %q, want %q", text, got, want)
		}
	}
}

package compile_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/engine/compile"
)

// TestCompileProcess_environment: a child gets no secret from the environment.
func TestCompileProcess_environment(t *testing.T) {
	t.Setenv("MORTISE_TEST_SECRET", "hunter2")
	for _, v := range compile.ChildEnvironment() {
		if strings.Contains(v, "hunter2") || strings.HasPrefix(v, "PATH=") || strings.HasPrefix(v, "HOME=") {
			t.Errorf("a child gets %s", v)
		}
	}
}

package program

import (
	"strings"
	"testing"
)

// TestLinks_openKV: a program without files of keys says so, and what to write instead.
func TestLinks_openKV(t *testing.T) {
	t.Parallel()
	if _, err := (Links{}).openKV(t.Context(), "a.db"); err == nil || !strings.Contains(err.Error(), "write memory: true") {
		t.Errorf("got %v", err)
	}
}

package testskip_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// heard is a test that notes the calls that it gets.
type heard struct {
	testing.TB

	failed, skipped string
}

func (h *heard) Helper()      {}
func (h *heard) Name() string { return "TestIt" }

func (h *heard) Fatalf(format string, args ...any) { h.failed = fmt.Sprintf(format, args...) }
func (h *heard) Skip(args ...any)                  { h.skipped = fmt.Sprint(args...) }

func TestMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "skipped")
	t.Setenv("MORTISE_SKIPPED", path)
	t.Setenv("CI", "")
	var h heard
	testskip.Missing(&h, "no %s", "tool")
	if h.failed != "" || h.skipped != "SKIPPED: no tool" {
		t.Errorf("without CI: failed %q, skipped %q", h.failed, h.skipped)
	}
	testskip.Skip(&h, "nothing")
	if list, err := os.ReadFile(path); err != nil || string(list) != "TestIt: no tool\nTestIt: nothing\n" {
		t.Errorf("listed %q, %v", list, err)
	}
	t.Setenv("CI", "true")
	testskip.Missing(&h, "no %s", "tool")
	if h.failed != "must not be missing where CI is set: no tool" {
		t.Errorf("in CI: failed %q", h.failed)
	}
}

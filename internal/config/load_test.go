package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/config"
)

// TestRead_missing: where there is no config the error says which command writes one there.
func TestRead_missing(t *testing.T) {
	own := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", own)
	t.Setenv("HOME", own)
	dir, err := os.UserConfigDir()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		config.FileName: config.FileName + ": there is no such file; mortise init writes one",
		filepath.Join(dir, "mortise", config.FileName): "mortise init --user that one",
		filepath.Join(own, "other.yaml"):               "other.yaml: there is no such file; name a file with --config",
	} {
		if _, err := config.Read(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

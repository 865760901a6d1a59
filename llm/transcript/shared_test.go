package transcript_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// sharedTranscripts returns the folder of real recordings. They are not part of
// the repository, so a test that reads them is skipped where they are missing.
func sharedTranscripts(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join(repoRoot(t), "..", "shared")
	}
	dir = filepath.Join(dir, "data", "transcripts")
	if _, err := os.Stat(dir); err != nil {
		testskip.Skip(t, "no real recordings in data/transcripts of the shared folder (set MORTISE_SHARED): %v", err)
	}
	return dir
}

func repoRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

// recordings lists the files of the folder by slash-separated relative path.
func recordings(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.Contains(path, "LICENSE") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

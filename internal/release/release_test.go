package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Archives hold what they were given, in one folder with modes and one time, and are the same each time they are written.
func TestArchives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte("binary"), 0o600); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)
	files := []file{{program, "mortise", 0o755}, {program, "LICENSE", 0o644}}
	for name, write := range map[string]func(string, string, []file, time.Time) error{"a.tar.gz": writeTar, "a.zip": writeZip} {
		var both [2][]byte
		for i := range both {
			path := filepath.Join(t.TempDir(), name)
			if err := write(path, "mortise_v1", files, at); err != nil {
				t.Fatal(err)
			}
			both[i], _ = os.ReadFile(path) //nolint:gosec // written above
		}
		if !bytes.Equal(both[0], both[1]) {
			t.Errorf("%s: two archives of the same files differ", name)
		}
		got := contents(t, name, both[0])
		want := "mortise_v1/mortise -rwxr-xr-x binary 2026-01-02T03:04:06Z\nmortise_v1/LICENSE -rw-r--r-- binary 2026-01-02T03:04:06Z\n"
		if got != want {
			t.Errorf("%s holds\n%swant\n%s", name, got, want)
		}
	}
}

// contents lists an archive.
func contents(t *testing.T, name string, data []byte) string {
	t.Helper()
	var out strings.Builder
	add := func(info os.FileInfo, path string, at time.Time, r io.Reader) {
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(path + " " + info.Mode().String() + " " + string(text) + " " + at.UTC().Format(time.RFC3339) + "\n")
	}
	if strings.HasSuffix(name, ".zip") {
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			r, err := f.Open()
			if err != nil {
				t.Fatal(err)
			}
			add(f.FileInfo(), f.Name, f.Modified, r)
		}
		return out.String()
	}
	g, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(g); ; {
		h, err := r.Next()
		if err != nil {
			return out.String()
		}
		add(h.FileInfo(), h.Name, h.ModTime, r)
	}
}

// SHA256SUMS has the form that sha256sum -c reads, sorted by name.
func TestSums(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := writeSums(dir, []string{"b", "a"}); err != nil {
		t.Fatal(err)
	}
	got, _ := os.ReadFile(filepath.Join(dir, "SHA256SUMS")) //nolint:gosec // written above
	want := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  a\nba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  b\n"
	if string(got) != want {
		t.Errorf("sums are\n%s", got)
	}
}

// A version or a platform that no release can have is refused before anything is built.
func TestBuild_refuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ version, target, want string }{
		{"1.2.3", "linux/amd64", "semantic version"},
		{"v1.2.3", "plan9/amd64", "linux/amd64"},
	} {
		if err := build(t.Context(), io.Discard, c.version, t.TempDir(), []string{c.target}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v", c.version, c.target, err)
		}
	}
}

//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestHangupsFromTheBeginning sends SIGHUP to a process that has not yet read its config, while it
// loads modules and until it ends: it comes to its end, and the report counts them.
func TestHangupsFromTheBeginning(t *testing.T) {
	t.Parallel()
	cfg := filepath.Join(t.TempDir(), "mortise.yaml")
	if err := syscall.Mkfifo(cfg, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := child(t, "", "run", "-o", "json", "-c", cfg, "--pace", "1ms", "--no-record", review(t))
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// The pipe opens when the command reads its config, so it was not loaded yet.
	w, err := os.OpenFile(cfg, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if err := cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	text := "version: 1\nplugins: [{module: " + filepath.Join(root(t), "testdata", "guests", "guard.wasm") + "}]\n"
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for over := false; !over; {
		select {
		case err = <-ended:
			over = true
		case <-every.C:
			_ = cmd.Process.Signal(syscall.SIGHUP) // it may be over
		}
	}
	var r struct {
		Threads        []struct{ Complete bool }
		Reloads        []any
		ReloadRequests int `json:"reload_requests"`
	}
	if bad := json.Unmarshal(out.Bytes(), &r); err != nil || bad != nil {
		t.Fatalf("%v, %v: %s", err, bad, &said)
	}
	if r.ReloadRequests == 0 || len(r.Reloads) != 0 || len(r.Threads) != 1 || !r.Threads[0].Complete || !strings.Contains(said.String(), "reload: no module was swapped") {
		t.Errorf("%+v: %s", r, &said)
	}
}

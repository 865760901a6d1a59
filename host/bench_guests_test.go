package host_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// Guests of the benchmarks, built once in a run.
var (
	hookGuest = sync.OnceValues(func() ([]byte, error) { return buildGuest("hook") })
	pdkGuest  = sync.OnceValues(func() ([]byte, error) { return buildGuest("pdk") })
)

// buildGuest builds a guest in Go below testdata/bench with the Go toolchain.
func buildGuest(name string) (wasm []byte, err error) {
	dir, err := os.MkdirTemp("", "mortise-guest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, name+".wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", file, ".")
	cmd.Dir = filepath.Join("testdata", "bench", name)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("guest %s: %w\n%s", name, err, text)
	}
	return os.ReadFile(file)
}

func built(tb testing.TB, build func() ([]byte, error)) []byte {
	tb.Helper()
	wasm, err := build()
	if errors.Is(err, exec.ErrNotFound) {
		testskip.Skip(tb, "there is no go command to build the guests with")
	}
	if err != nil {
		tb.Fatal(err)
	}
	return wasm
}

// cGuest is the hook in C, as committed.
func cGuest(tb testing.TB) []byte {
	tb.Helper()
	return benchGuest(tb, "hook")
}

// benchGuest is a guest in C, as committed.
func benchGuest(tb testing.TB, name string) []byte {
	tb.Helper()
	wasm, err := os.ReadFile(filepath.Join("testdata", "bench", "c", name+".wasm"))
	if err != nil {
		tb.Fatal(err)
	}
	return wasm
}

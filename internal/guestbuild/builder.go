package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	outputDir     = "testdata/guests"
	sumsFile      = "SHA256SUMS"
	toolchainFile = "TOOLCHAIN"
	parallel      = 2
)

// guest is one module to build.
type guest struct {
	name, dir string
	// bundled guests are in the archive next to the package that embeds them, too.
	bundled bool
}

func guests() []guest {
	return []guest{
		{name: "admission", dir: "summarizers/modules/admission", bundled: true},
		{name: "guard", dir: "examples/plugins/guard", bundled: true},
		{name: "index", dir: "examples/plugins/index"},
		{name: "ledger", dir: "plugins/testdata/ledger"},
		{name: "lookup", dir: "examples/plugins/lookup"},
		{name: "teller", dir: "plugins/testdata/teller"},
		{name: "redact", dir: "examples/plugins/redact", bundled: true},
		{name: "summarizers", dir: "summarizers/modules/summarizers", bundled: true},
	}
}

// builder builds guests of one repository.
type builder struct {
	root string
	list []guest
	out  io.Writer
	mu   sync.Mutex // guards out
}

// newBuilder finds the root, unless it is given, and the guests.
func newBuilder(root, only string, out io.Writer) (*builder, error) {
	if root == "" {
		found, err := findRoot()
		if err != nil {
			return nil, err
		}
		root = found
	}
	b := &builder{root: root, out: out}
	for _, g := range guests() {
		if only == "" || only == g.name {
			b.list = append(b.list, g)
		}
	}
	if len(b.list) == 0 {
		return nil, fmt.Errorf("guestbuild: -only %s: no such guest", only)
	}
	return b, nil
}

// findRoot walks up to the go.mod of the repository.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("guestbuild: working directory: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/mortise-dev/mortise\n") {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("guestbuild: root: no go.mod of github.com/mortise-dev/mortise above the working directory")
		}
		dir = up
	}
}

// build builds the guests into a folder, two at a time, and joins their errors.
func (b *builder) build(ctx context.Context, folder string) error {
	var wg sync.WaitGroup
	slots := make(chan struct{}, parallel)
	errs := make([]error, len(b.list))
	for i, g := range b.list {
		wg.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			errs[i] = b.one(ctx, g, filepath.Join(folder, g.name+".wasm"))
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (b *builder) one(ctx context.Context, g guest, file string) error {
	start := time.Now()
	cmd := exec.CommandContext(ctx, "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", file, ".")
	cmd.Dir = filepath.Join(b.root, g.dir)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("guestbuild: %s: %w\n%s", g.name, err, text)
	}
	if err := tighten(file); err != nil {
		return fmt.Errorf("guestbuild: %s: %w", g.name, err)
	}
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("guestbuild: %s: %w", g.name, err)
	}
	b.say("%-12s %9d bytes  %s", g.name, info.Size(), time.Since(start).Round(time.Millisecond))
	return nil
}

func (b *builder) say(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	fmt.Fprintf(b.out, format+"\n", args...)
}

// toolchain is the version of Go that builds.
func (b *builder) toolchain(ctx context.Context) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	cmd.Dir = b.root
	text, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("guestbuild: go env GOVERSION: %w", err)
	}
	return cmp.Or(strings.TrimSpace(string(text)), "unknown"), nil
}

package host_test

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// sharedCache keeps compiled modules from one run of the tests to the next. What compiles is tested in folders of its own.
var sharedCache = filepath.Join(os.TempDir(), "mortise-host-test")

// verifyResets is set where hosts check each reset, page by page: in make check. Benchmarks would measure it.
var verifyResets bool

func TestMain(m *testing.M) {
	host.CompileChild()
	if dir, err := os.UserCacheDir(); err == nil {
		sharedCache = filepath.Join(dir, "mortise-test")
	}
	flag.Parse()
	if testing.Short() {
		long = 20 << 20
	} else if bench := flag.Lookup("test.bench"); (bench == nil || bench.Value.String() == "") && os.Getenv(entrantVar) == "" {
		verifyResets = true
	}
	goleak.VerifyTestMain(m)
}

// engines are what every suite runs on.
func engines() []string {
	return []string{hosttest.Extism, hosttest.Native}
}

// onEngines runs a suite on every engine.
func onEngines(t *testing.T, suite func(t *testing.T, e string)) {
	t.Helper()
	for _, e := range engines() {
		t.Run(e, func(t *testing.T) {
			t.Parallel()
			suite(t, e)
		})
	}
}

// newHost makes a host that is closed with the test.
func newHost(tb testing.TB, cfg host.Config) *host.Host {
	tb.Helper()
	if cfg.CacheDir == "" {
		cfg.CacheDir = sharedCache
	}
	h, err := host.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	if verifyResets {
		host.VerifyResets(h)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return h
}

// load loads spec on a host of its own.
func load(tb testing.TB, e string, spec host.Spec) *host.Module {
	tb.Helper()
	m, err := newHost(tb, host.Config{Engine: hosttest.Engine(e)}).Load(tb.Context(), spec)
	if err != nil {
		tb.Fatal(err)
	}
	return m
}

// wat returns the path of a hostile guest.
func wat(name string) string { return filepath.Join("testdata", name+".wasm") }

// watBytes returns a hostile guest.
func watBytes(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(wat(name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// peer returns the path of one of go-sdk's own modules, and skips where they
// are not there.
func peer(tb testing.TB, name string) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/extism/go-sdk").Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		testskip.Missing(tb, "the modules of github.com/extism/go-sdk are not in the module cache (%v)", err)
	}
	return filepath.Join(dir, "wasm", name+".wasm")
}

// call expects a call to succeed with an output.
func call(t *testing.T, m *host.Module, export, input, want string) {
	t.Helper()
	out, err := m.Call(t.Context(), export, []byte(input))
	if err != nil {
		t.Fatalf("%s(%q): %v", export, input, err)
	}
	if string(out) != want {
		t.Fatalf("%s(%q) = %q, want %q", export, input, out, want)
	}
}

// logBuffer is a writer for a logger that several goroutines use.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// logger writes lines without a time.
func logger(b *logBuffer, level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{
		Level: level,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
}

package host_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
)

// holding is what a process holds: goroutines, descriptors and mappings.
type holding struct{ goroutines, files, mappings int }

func holdings(t *testing.T) holding {
	t.Helper()
	runtime.GC()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return holding{runtime.NumGoroutine(), len(fds), bytes.Count(maps, []byte("\n"))}
}

// trapRound loads guests, makes 2,000 calls and closes everything.
func trapRound(t *testing.T, portable bool) (open holding) {
	t.Helper()
	h, err := host.New(host.Config{Engine: host.EngineNative, CacheDir: sharedCache})
	if err != nil {
		t.Fatal(err)
	}
	if portable {
		_ = host.UsePortableMemory(h)
	}
	modules := make(map[string]*host.Module)
	for name, export := range map[string]string{"secrets": "header_top", "unreachable": "run", "stateful": "table_set", "memory_grow": "keep"} {
		limits := host.Limits{Instances: 2, MemoryPages: 17}
		m, err := h.Load(t.Context(), host.Spec{Path: wat(name), Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		modules[export] = m
	}
	for range 500 {
		for export, m := range modules {
			_, _ = m.Call(t.Context(), export, nil) // most of them trap
		}
	}
	for export, m := range modules {
		if s := m.Stats(); s.Calls != 500 || s.Replaced != 500 {
			t.Errorf("%s: %+v", export, s)
		}
	}
	open = holdings(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		t.Error(err)
	}
	return open
}

// TestNative_leak runs in a process of its own, because other tests hold things too.
func TestNative_leak(t *testing.T) {
	t.Parallel()
	const child = "MORTISE_TEST_LEAK"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNative_leak$", "-test.v", "-test.count=1")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestNative_leak")) {
			t.Errorf("the child: %v", err)
		}
		return
	}
	for _, portable := range []bool{false, true} {
		_ = trapRound(t, portable) // the runtime's own mappings grow at first
		before := holdings(t)
		open := trapRound(t, portable)
		after := holdings(t)
		t.Logf("portable %t: before %+v, open %+v, after %+v", portable, before, open, after)
		if after.goroutines > before.goroutines || after.files > before.files {
			t.Errorf("portable %t: before %+v, after %+v", portable, before, after)
		}
		// Go's heap and threads take a mapping now and then; a leak would show in
		// hundreds.
		if after.mappings > before.mappings+10 {
			t.Errorf("portable %t: %d mappings before, %d after", portable, before.mappings, after.mappings)
		}
	}
}

package host_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// holding is what a process holds.
type holding struct {
	goroutines, files, mappings int
	// templates are mappings of the images of templates.
	templates int
	// heap and resident are in KiB.
	heap, resident int
}

func holdings(t *testing.T) holding {
	t.Helper()
	debug.FreeOSMemory() // collects, too
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	return holding{
		goroutines: runtime.NumGoroutine(), files: len(fds), mappings: bytes.Count(maps, []byte("\n")),
		templates: bytes.Count(maps, []byte("mortise-template")),
		heap:      int(mem.HeapAlloc >> 10), resident: residentKiB(t, smaps),
	}
}

// residentKiB adds up what is resident, but for what the race detector keeps of
// it: its shadow, at 2 and 3 << 44 (compiler-rt, tsan_platform.h, the mappings for
// Go), comes and goes by tens of MiB with no relation to what the program holds.
func residentKiB(t *testing.T, smaps []byte) (sum int) {
	t.Helper()
	const shadow, above = 2 << 44, 4 << 44
	var start uint64
	for line := range strings.Lines(string(smaps)) {
		var end uint64
		if n, _ := fmt.Sscanf(line, "%x-%x ", &start, &end); n == 2 {
			continue
		}
		var kib int
		if _, err := fmt.Sscanf(line, "Rss: %d kB", &kib); err == nil && (start < shadow || start >= above) {
			sum += kib
		}
	}
	if sum == 0 {
		t.Fatalf("nothing is resident: %.200s", smaps)
	}
	return sum
}

// trapRound loads guests, makes calls, of which nearly half trap, and swaps, and
// closes everything.
func trapRound(t *testing.T, portable bool, calls int) (open holding) {
	t.Helper()
	h, err := host.New(host.Config{Engine: hosttest.Engine(hosttest.Native), CacheDir: sharedCache})
	if err != nil {
		t.Fatal(err)
	}
	if portable {
		_ = host.UsePortableMemory(h)
	}
	modules := make(map[string]*host.Module)
	limits := host.Limits{Instances: 2, MemoryPages: 17}
	for name, export := range map[string]string{"secrets": "header_top", "unreachable": "run", "stateful": "table_set", "memory_grow": "keep"} {
		m, err := h.Load(t.Context(), host.Spec{Path: wat(name), Limits: limits})
		if err != nil {
			t.Fatal(err)
		}
		modules[export] = m
	}
	each := calls / 10
	for range each {
		for export, m := range modules {
			_, _ = m.Call(t.Context(), export, nil) // most of them trap
		}
	}
	for export, m := range modules {
		if s := m.Stats(); s.Calls != int64(each) || s.Replaced != int64(each) {
			t.Errorf("%s: %+v", export, s)
		}
	}
	swapRound(t, h, limits, calls-4*each)
	open = holdings(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := h.Close(ctx); err != nil {
		t.Error(err)
	}
	return open
}

// swapRound swaps every thousand calls. Each third generation is rolled back, and
// each has a session that is left open.
func swapRound(t *testing.T, h *host.Host, limits host.Limits, calls int) {
	t.Helper()
	spec := func(work byte) host.Spec {
		return host.Spec{Name: "policy", Wasm: generation(t, '1', work), Limits: limits, Grants: host.Grants{Sticky: true}}
	}
	m, err := h.Load(t.Context(), spec('.'))
	if err != nil {
		t.Fatal(err)
	}
	const every = 1000
	for n := range calls {
		if n%every == 0 {
			work := byte('.')
			if n/every%3 == 2 {
				work = '!'
			}
			if _, err := m.Swap(t.Context(), spec(work), host.SwapOptions{}); err != nil {
				t.Fatal(err)
			}
			s, err := m.Session(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Call(t.Context(), "count", nil); err != nil {
				t.Fatal(err)
			}
			if n/every%2 == 0 {
				if err := s.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		_, _ = m.Call(t.Context(), "work", nil) // those of a bad generation trap
	}
	want := int64((calls + every - 1) / every)
	// The first of five watched calls is that of the session.
	if s := m.Stats(); s.Swaps != want || s.Rollbacks != want/3 || s.Traps != 4*s.Rollbacks {
		t.Errorf("%d calls: %+v", calls, s)
	}
}

// TestNative_leak makes 100,000 calls, and fewer under the race detector. It runs in a process of its own, because other tests hold things too.
func TestNative_leak(t *testing.T) {
	t.Parallel()
	const child = "MORTISE_TEST_LEAK"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNative_leak$", "-test.v", "-test.count=1", fmt.Sprintf("-test.short=%t", testing.Short()))
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestNative_leak")) {
			t.Errorf("the child: %v", err)
		}
		return
	}
	for _, portable := range []bool{false, true} {
		calls := leakCalls / 5 * 4
		if portable {
			calls = leakCalls / 5
		}
		if testing.Short() {
			calls /= 5 // a leak of one call in 200 is more than the slack below
		}
		_ = trapRound(t, portable, 2000) // the runtime's own mappings grow at first
		before := holdings(t)
		open := trapRound(t, portable, calls)
		after := holdings(t)
		t.Logf("portable %t: before %+v, open %+v, after %+v", portable, before, open, after)
		if after.goroutines > before.goroutines || after.files > before.files {
			t.Errorf("portable %t: before %+v, after %+v", portable, before, after)
		}
		const slack = 8 << 10 // 80 instances of the smallest memory
		if after.heap > before.heap+slack || after.resident > before.resident+2*slack {
			t.Errorf("portable %t: memory before %+v, after %+v", portable, before, after)
		}
		// Go's heap and threads take mappings; a leak would show in hundreds.
		if after.mappings > before.mappings+60 || after.templates != 0 || !portable && open.templates == 0 {
			t.Errorf("portable %t: mappings before %+v, open %+v, after %+v", portable, before, open, after)
		}
	}
}

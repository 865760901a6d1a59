package host_test

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// maxInstance is how many bytes of its own an instance of a Go guest may take.
const maxInstance = 200 << 10

// TestInstance_cost makes instances of a Go guest from its template and counts what
// each takes: of Go's heap, and of private pages. It runs in a process of its own,
// because other tests take memory too.
func TestInstance_cost(t *testing.T) {
	t.Parallel()
	const child = "MORTISE_TEST_COST"
	if os.Getenv(child) == "" {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInstance_cost$", "-test.v", "-test.count=1")
		cmd.Env = append(os.Environ(), child+"=1")
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil || !bytes.Contains(out, []byte("--- PASS: TestInstance_cost")) {
			t.Errorf("the child: %v", err)
		}
		return
	}
	const n = 64
	m := load(t, hosttest.Native, host.Spec{Name: "redact", Wasm: goGuest(t)})
	heap, pages := heapInUse(), privatePages(t)
	alive := make([]*host.Instance, 0, n)
	for range n {
		i, err := host.MakeInstance(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		alive = append(alive, i)
	}
	heap, pages = heapInUse()-heap, privatePages(t)-pages
	t.Logf("an instance takes %d bytes of Go's heap and %d bytes of private pages, the heap's included", heap/n, pages/n)
	if heap/n > maxInstance || pages/n > maxInstance || min(heap, pages) <= 0 {
		t.Errorf("an instance takes more than %d bytes", maxInstance)
	}
	for _, i := range alive {
		if err := i.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func heapInUse() int64 {
	debug.FreeOSMemory() // collects, and gives back what the compiler took
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return int64(s.HeapAlloc) //nolint:gosec // below 2^63
}

// privatePages are the bytes of the process that no other shares and no file backs.
func privatePages(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/smaps_rollup")
	if err != nil {
		testskip.Skip(t, "private pages cannot be counted: %v", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "Private_Dirty:"); ok {
			var kib int64
			if _, err := fmt.Sscanf(rest, "%d kB", &kib); err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatal("smaps_rollup has no Private_Dirty")
	return 0
}

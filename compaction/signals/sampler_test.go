package signals_test

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/signals"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const mib = 1 << 20

func newSampler(tb testing.TB, cfg signals.Config) *signals.Sampler {
	tb.Helper()
	s, err := signals.New(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// tree is a file system of files and their contents.
func tree(files ...string) fs.FS {
	out := fstest.MapFS{}
	for i := 0; i < len(files); i += 2 {
		out[files[i]] = &fstest.MapFile{Data: []byte(files[i+1])}
	}
	return out
}

func TestMemory(t *testing.T) {
	t.Parallel()
	b := func(n int64) string { return fmt.Sprintln(n * mib) }
	const v2 = "sys/fs/cgroup/"
	const v1 = "sys/fs/cgroup/memory/"
	for _, tc := range []struct {
		name string
		root fs.FS
		want int64 // MiB, negative for unknown
	}{
		{"nothing is known", tree(), -1},
		{"the machine", tree("proc/meminfo", "MemTotal: 9999999 kB\nMemAvailable:    102400 kB\n"), 100},
		{"version 2", tree("proc/self/cgroup", "0::/a/b\n", v2+"a/b/memory.max", b(500), v2+"a/b/memory.current", b(200)), 300},
		{
			"version 2, the cache can be given back",
			tree("proc/self/cgroup", "0::/a\n", v2+"a/memory.max", b(500), v2+"a/memory.current", b(490), v2+"a/memory.stat", "anon 1\ninactive_file "+b(90)),
			100,
		},
		{
			"version 2, the group above is tighter",
			tree("proc/self/cgroup", "0::/a/b\n", v2+"a/b/memory.max", b(500), v2+"a/b/memory.current", b(200), v2+"a/memory.max", b(510), v2+"a/memory.current", b(410)),
			100,
		},
		{"version 2 without a limit", tree("proc/self/cgroup", "0::/a\n", v2+"a/memory.max", "max\n", v2+"a/memory.current", b(490)), -1},
		{"in a container", tree("proc/self/cgroup", "0::/docker/x\n", v2+"memory.max", b(50), v2+"memory.current", b(20)), 30},
		{
			"version 1",
			tree("proc/self/cgroup", "12:cpu:/x\n7:memory,other:/a\n", v1+"a/memory.limit_in_bytes", b(300), v1+"a/memory.usage_in_bytes", b(100), v1+"a/memory.stat", "total_inactive_file "+b(7)),
			207,
		},
		{
			"version 1 without a limit",
			tree("proc/self/cgroup", "7:memory:/a\n", v1+"a/memory.limit_in_bytes", "9223372036854771712\n", v1+"a/memory.usage_in_bytes", b(100)),
			-1,
		},
		{
			"both versions", // the memory is in version 1
			tree("proc/self/cgroup", "0::/u\n7:memory:/a\n", v1+"a/memory.limit_in_bytes", b(300), v1+"a/memory.usage_in_bytes", b(100)),
			200,
		},
		{
			"the least counts",
			tree("proc/self/cgroup", "0::/\n", v2+"memory.max", b(500), v2+"memory.current", b(200), "proc/meminfo", "MemAvailable: 51200 kB\n"),
			50,
		},
		{"more is used than allowed", tree("proc/self/cgroup", "0::/\n", v2+"memory.max", b(5), v2+"memory.current", b(200)), 0},
		{"what is written makes no sense", tree("proc/self/cgroup", "x\n::\n0::/../../etc\n", v2+"memory.max", "lots", "proc/meminfo", "MemAvailable: -5 kB\nMemAvailable:\n"), -1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			m := newSampler(t, signals.Config{Root: tc.root}).Sample().Memory
			switch {
			case m == nil && tc.want >= 0:
				t.Errorf("unknown, want %d MiB", tc.want)
			case m != nil && (m.AvailableBytes == nil || *m.AvailableBytes != tc.want*mib || m.Pressure != (tc.want < 64) || m.RequiredHeadroomBytes != 64*mib):
				t.Errorf("%d MiB available, %+v, want %d", *m.AvailableBytes/mib, m, tc.want)
			}
		})
	}
}

// The real machine says something where it can.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	m := newSampler(t, signals.Config{}).Sample().Memory
	if runtime.GOOS != "linux" {
		return // unknown is right
	}
	if m == nil || m.AvailableBytes == nil || *m.AvailableBytes <= 0 || *m.AvailableBytes > math.MaxInt64/2 {
		t.Errorf("sampled %+v", m)
	}
}

// The limit of the Go runtime counts. It is of the whole process, so another one
// tries it.
func TestOwnLimit(t *testing.T) {
	t.Parallel()
	if os.Getenv("GOMEMLIMIT") == "100MiB" {
		m := newSampler(t, signals.Config{Root: tree()}).Sample().Memory
		if m == nil || *m.AvailableBytes <= 0 || *m.AvailableBytes >= 100*mib {
			t.Errorf("sampled %+v", m)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOwnLimit$") //nolint:gosec // this very test
	cmd.Env = append(os.Environ(), "GOMEMLIMIT=100MiB")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestProvider(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := newSampler(t, signals.Config{
		Root: tree(), Now: func() time.Time { return now }, MaxLatency: 5 * time.Second, MaxErrorRate: 50, Window: time.Minute,
	})
	sample := func() *abi.ProviderSignal { return s.Sample().Provider }
	for range 4 {
		s.Observe(time.Second, false)
	}
	if p := sample(); p != nil {
		t.Errorf("judged by four calls: %+v", p)
	}
	for range 95 {
		s.Observe(time.Second, false)
	}
	if p := sample(); p == nil || p.Degraded || p.Stale || *p.P95LatencyMS != 1000 || *p.ErrorRatePerMille != 0 || *p.MaxP95LatencyMS != 5000 || *p.MaxErrorRatePerMille != 50 {
		t.Errorf("sampled %+v", p)
	}
	for range 4 {
		s.Observe(8*time.Second, false)
	}
	if p := sample(); p.Degraded || *p.P95LatencyMS != 1000 {
		t.Errorf("four of 103 are slow: %+v, %d", p, *p.P95LatencyMS)
	}
	for range 4 {
		s.Observe(8*time.Second, false)
	}
	if p := sample(); !p.Degraded || *p.P95LatencyMS != 8000 {
		t.Errorf("eight of 107 are slow: %+v", p)
	}
	now = now.Add(time.Minute + 1)
	if p := sample(); !p.Stale || p.Degraded || p.P95LatencyMS != nil || p.ErrorRatePerMille != nil {
		t.Errorf("after the window: %+v", p)
	}
	for i := range 40 {
		s.Observe(time.Second, i < 3)
	}
	if p := sample(); p.Stale || !p.Degraded || *p.ErrorRatePerMille != 75 || *p.P95LatencyMS != 1000 {
		t.Errorf("three of 40 failed: %+v", p)
	}
	// The oldest are forgotten.
	for range 300 {
		s.Observe(2*time.Second, false)
	}
	if p := sample(); p.Degraded || *p.ErrorRatePerMille != 0 || *p.P95LatencyMS != 2000 {
		t.Errorf("sampled %+v", p)
	}
}

// The files are not read at each step of a run.
func TestMemoryIsReadSeldom(t *testing.T) {
	t.Parallel()
	now := time.Now()
	root := fstest.MapFS{"proc/meminfo": {Data: []byte("MemAvailable: 102400 kB\n")}}
	s := newSampler(t, signals.Config{Root: root, Now: func() time.Time { return now }})
	s.Sample()
	root["proc/meminfo"].Data = []byte("MemAvailable: 1024 kB\n")
	if m := s.Sample().Memory; *m.AvailableBytes != 100*mib {
		t.Errorf("read again at once: %d", *m.AvailableBytes)
	}
	now = now.Add(time.Second)
	if m := s.Sample().Memory; *m.AvailableBytes != mib || !m.Pressure {
		t.Errorf("not read again: %d", *m.AvailableBytes)
	}
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]signals.Config{
		"Headroom": {Headroom: -1}, "MaxLatency": {MaxLatency: -1}, "MaxErrorRate": {MaxErrorRate: 1001},
		"Window": {Window: -1}, "MinCalls": {MinCalls: -1}, "Every": {Every: -1},
	} {
		if _, err := signals.New(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("got %v, want an error that names %s", err, field)
		}
	}
}

func TestConcurrently(t *testing.T) {
	t.Parallel()
	s := newSampler(t, signals.Config{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 200 {
				s.Observe(time.Millisecond, i%7 == 0)
				s.Sample()
			}
		})
	}
	wg.Wait()
	if p := s.Sample().Provider; p == nil || *p.P95LatencyMS != 1 || *p.ErrorRatePerMille < 100 {
		t.Errorf("sampled %+v", p)
	}
}

func BenchmarkSample(b *testing.B) {
	s := newSampler(b, signals.Config{})
	for range 256 {
		s.Observe(time.Second, false)
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Sample()
	}
}

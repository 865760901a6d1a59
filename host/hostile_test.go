package host_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	logcap "github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// wantTrap checks the kind of a trap and returns it.
func wantTrap(t *testing.T, err error, kind host.Reason) *host.TrapError {
	t.Helper()
	var trap *host.TrapError
	if !errors.As(err, &trap) {
		t.Fatalf("got %v, want a trap", err)
	}
	if trap.Kind != kind {
		t.Fatalf("got kind %s (%v), want %s", trap.Kind, err, kind)
	}
	return trap
}

func wantDeadline(t *testing.T, err error) {
	t.Helper()
	_ = wantTrap(t, err, host.TrapDeadline)
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		t.Fatalf("%v is not a missed deadline", err)
	}
}

// TestHostile runs one guest per way to fail, on every engine.
func TestHostile(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		t.Run("traps", func(t *testing.T) { t.Parallel(); hostileTraps(t, e) })
		t.Run("spin", func(t *testing.T) { t.Parallel(); hostileSpin(t, e) })
		t.Run("init", func(t *testing.T) { t.Parallel(); hostileInit(t, e) })
		t.Run("output", func(t *testing.T) { t.Parallel(); hostileOutput(t, e) })
		t.Run("memory", func(t *testing.T) { t.Parallel(); hostileMemory(t, e) })
		t.Run("refusals", func(t *testing.T) { t.Parallel(); hostileRefusals(t, e) })
		t.Run("log", func(t *testing.T) { t.Parallel(); hostileLog(t, e) })
		t.Run("exit", func(t *testing.T) { t.Parallel(); hostileExit(t, e) })
		t.Run("sleep", func(t *testing.T) { t.Parallel(); hostileSleep(t, e) })
		t.Run("kernel", func(t *testing.T) { t.Parallel(); hostileKernel(t, e) })
		t.Run("grants", func(t *testing.T) { t.Parallel(); hostileGrants(t, e) })
		t.Run("describe", func(t *testing.T) { t.Parallel(); hostileDescribe(t, e) })
	})
}

func hostileTraps(t *testing.T, e string) {
	t.Helper()
	for name, detail := range map[string]string{
		"unreachable":   "unreachable at .inner() < .run() i32",
		"out_of_bounds": "out of bounds memory access at .run() i32",
		"recursion":     "stack overflow",
	} {
		m := load(t, e, host.Spec{Path: wat(name), Limits: host.Limits{Timeout: time.Minute}})
		_, err := m.Call(t.Context(), "run", nil)
		if trap := wantTrap(t, err, host.TrapFault); trap.Detail != detail || trap.Err != nil {
			t.Errorf("%s: detail %q, want %q", name, trap.Detail, detail)
		}
		if s := m.Stats(); s.Traps != 1 || s.Failures != 1 || s.Replaced != 1 || s.Instances != 0 {
			t.Errorf("%s: the instance was not discarded: %+v", name, s)
		}
	}
	m := load(t, e, host.Spec{Path: wat("unreachable")})
	_, err := m.Call(t.Context(), "run", nil)
	want := `host: module "unreachable" export "run": trap: unreachable at .inner() < .run() i32`
	if err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
	call(t, m, "ok", "", "")
}

// hostileSpin also measures how long the garbage collector waits and how late
// the deadline is. The numbers are logged, not asserted: the machine is shared.
func hostileSpin(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: wat("spin"), Limits: host.Limits{Timeout: 400 * time.Millisecond, Instances: 1}})
	ended := make(chan error, 1)
	start := time.Now()
	go func() {
		_, err := m.Call(t.Context(), "run", nil)
		ended <- err
	}()
	var worst time.Duration
	var collections int
	for {
		before := time.Now()
		runtime.GC()
		worst = max(worst, time.Since(before))
		collections++
		select {
		case err := <-ended:
			wantDeadline(t, err)
			took := time.Since(start)
			t.Logf("%d collections while a guest spun, the longest %s; deadline of 400ms came after %s", collections, worst, took)
			if took > 20*time.Second {
				t.Errorf("stopped after %s", took)
			}
			call(t, m, "ok", "", "")
			return
		default:
		}
	}
}

func hostileInit(t *testing.T, e string) {
	t.Helper()
	h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
	for name, want := range map[string]string{
		"spin_start":      "did not start: out of time in the start function or the initialisation of the guest's runtime; make it start faster, or raise Limits.InitTimeout",
		"spin_initialize": "did not start: out of time in the start function or the initialisation of the guest's runtime; make it start faster, or raise Limits.InitTimeout",
		"trap_start":      "did not start: unreachable at .broken(); see what the module does when it starts",
		"trap_initialize": "did not start: unreachable at .broken(); see what the module does when it starts",
		"exit_initialize": "did not start: exit code 4; see what the module does when it starts",
	} {
		spins := strings.HasPrefix(name, "spin")
		var limits host.Limits
		if spins {
			limits.InitTimeout = 200 * time.Millisecond
		}
		start := time.Now()
		_, err := h.Load(t.Context(), host.Spec{Path: wat(name), Limits: limits})
		_ = wantTrap(t, err, host.TrapInit)
		full := `host: module "` + name + `" (` + wat(name) + ") " + want
		if err.Error() != full {
			t.Errorf("%s:\n got %v\nwant %s", name, err, full)
		}
		if errors.Is(err, context.DeadlineExceeded) != spins {
			t.Errorf("%s: deadline: %v", name, err)
		}
		t.Logf("%s: refused after %s", name, time.Since(start))
	}
	m := load(t, e, host.Spec{Path: wat("initialize_once")})
	for range 3 {
		_, err := m.Call(t.Context(), "count", nil)
		var refused *host.GuestError
		if !errors.As(err, &refused) || refused.Code != 1 {
			t.Errorf("_initialize did not run exactly once: %v", err)
		}
	}
}

func hostileOutput(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: wat("output_range")})
	for export, detail := range map[string]string{
		"write":      "output_write: 7 bytes at 65530 are outside the memory of 65536 bytes",
		"write_wrap": "output_write: 2 bytes at 4294967295 are outside the memory of 65536 bytes",
		"read":       "input_read: 3 bytes at 65534 are outside the memory of 65536 bytes",
	} {
		_, err := m.Call(t.Context(), export, []byte("abc"))
		if trap := wantTrap(t, err, host.TrapFault); trap.Detail != detail {
			t.Errorf("%s: %q, want %q", export, trap.Detail, detail)
		}
	}
	call(t, m, "write_last", "", "")
	_, err := load(t, e, host.Spec{Path: wat("output_no_memory")}).Call(t.Context(), "run", nil)
	if trap := wantTrap(t, err, host.TrapFault); trap.Detail != "output_write: 1 bytes at 0 are outside the memory of 0 bytes" {
		t.Errorf("without memory: %q", trap.Detail)
	}
	huge := load(t, e, host.Spec{Path: wat("output_huge"), Limits: host.Limits{OutputBytes: 1_000_000}})
	for export, detail := range map[string]string{
		"bulk":     "1000001 bytes of output, 1000000 are allowed",
		"kernel":   "1000001 bytes of output, 1000000 are allowed",
		"negative": "4294967295 bytes of output, 1000000 are allowed",
	} {
		_, err := huge.Call(t.Context(), export, nil)
		if trap := wantTrap(t, err, host.TrapOutput); trap.Detail != detail {
			t.Errorf("%s: %q, want %q", export, trap.Detail, detail)
		}
	}
	if s := huge.Stats(); s.Replaced != 3 {
		t.Errorf("instances that overflowed were kept: %+v", s)
	}
}

func hostileMemory(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: wat("memory_grow"), Limits: host.Limits{MemoryPages: 64, Instances: 1}})
	pages := func() uint32 {
		_, err := m.Call(t.Context(), "pages", nil)
		var refused *host.GuestError
		if !errors.As(err, &refused) {
			t.Fatal(err)
		}
		return refused.Code
	}
	if n := pages(); n != 1 {
		t.Fatalf("%d pages at the start", n)
	}
	call(t, m, "keep", "", "")
	if s := m.Stats(); s.Replaced != 1 {
		t.Errorf("an instance that filled its memory was kept: %+v", s)
	}
	if n := pages(); n != 1 {
		t.Errorf("a new instance has %d pages", n)
	}
	_, err := m.Call(t.Context(), "trap", nil)
	trap := wantTrap(t, err, host.TrapMemory)
	if trap.Detail != "unreachable at .trap() i32; 4194304 of 4194304 bytes of memory are in use" &&
		!strings.HasSuffix(trap.Detail, "; 4194304 of 4194304 bytes of memory are in use") {
		t.Errorf("detail %q", trap.Detail)
	}
}

func hostileRefusals(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: wat("refuse"), Limits: host.Limits{Instances: 1}})
	for export, want := range map[string]host.GuestError{
		"text_and_code": {Code: 7, Message: `no\n\x1b`},
		"code":          {Code: 3},
		"negative":      {Code: 0xffffffff},
		"text":          {Message: `no\n\x1b`},
	} {
		want.Module, want.Export = "refuse", export
		_, err := m.Call(t.Context(), export, nil)
		var refused *host.GuestError
		if !errors.As(err, &refused) || *refused != want {
			t.Errorf("%s: %#v, want %#v", export, err, want)
		}
	}
	if s := m.Stats(); s.Replaced != 0 || s.Refusals != 4 || s.Traps != 0 || s.Calls != 4 {
		t.Errorf("%+v", s)
	}
	_, err := m.Call(t.Context(), "text_and_trap", nil)
	_ = wantTrap(t, err, host.TrapFault)
	// The text of one call is not found by the next.
	_, err = m.Call(t.Context(), "code", nil)
	want := `host: module "refuse" export "code": refused with code 3`
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func hostileLog(t *testing.T, e string) {
	t.Helper()
	var lines logBuffer
	h := newHost(t, host.Config{Engine: hosttest.Engine(e), Logger: logger(&lines, slog.LevelInfo)})
	m, err := h.Load(t.Context(), host.Spec{Path: wat("log_flood"), Limits: host.Limits{LogBytes: 10 * 1024, Timeout: time.Minute}, Grants: host.Grants{Capabilities: []host.Capability{logcap.Grant{}}}})
	if err != nil {
		t.Fatal(err)
	}
	for n := range int64(2) {
		call(t, m, "flood", "", "")
		if got := m.Stats().LogsDropped; got != 998*(n+1) {
			t.Errorf("%d messages dropped after %d calls", got, n+1)
		}
	}
	if got := strings.Count(lines.String(), "\n"); got != 2*(2+1) {
		t.Errorf("%d lines, want 2 of 4 KiB with their escapes and a note for each call", got)
	}
	for _, export := range []string{"short", "empty"} {
		before, dropped := strings.Count(lines.String(), "\n"), m.Stats().LogsDropped
		call(t, m, export, "", "")
		written := int64(strings.Count(lines.String(), "\n") - before - 1) // and a note
		if written < 100 || written > 160 || written+m.Stats().LogsDropped-dropped != 3000 {
			t.Errorf("%s: %d of 3000 messages were written and %d dropped", export, written, m.Stats().LogsDropped-dropped)
		}
	}
	before := lines.String()
	call(t, m, "one", "", "") // below the logger's level
	if lines.String() != before {
		t.Error("a message below the logger's level came through")
	}
}

func hostileExit(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: wat("proc_exit")})
	_, err := m.Call(t.Context(), "three", nil)
	if trap := wantTrap(t, err, host.TrapExit); trap.ExitCode != 3 || trap.Detail != "exit code 3; stderr: oh no" {
		t.Errorf("%+v", trap)
	}
	for _, export := range []string{"fake_deadline", "fake_cancel"} {
		_, err := m.Call(t.Context(), export, nil)
		_ = wantTrap(t, err, host.TrapExit)
		if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("%s passes for an ended context", export)
		}
	}
	call(t, m, "zero", "", "")
	if s := m.Stats(); s.Replaced != 4 {
		t.Errorf("%+v", s)
	}
}

func hostileSleep(t *testing.T, e string) {
	t.Helper()
	call(t, load(t, e, host.Spec{Path: wat("sleeper")}), "sleep", "", "")
	m := load(t, e, host.Spec{Path: wat("sleeper"), Limits: host.Limits{Timeout: 100 * time.Millisecond}, Grants: host.Grants{Clock: true}})
	start := time.Now()
	_, err := m.Call(t.Context(), "sleep", nil)
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("a sleeping guest was stopped after %s", took)
	}
	if err != nil { // It may also be woken up and end by itself.
		wantDeadline(t, err)
	}
	if s := m.Stats(); s.Replaced != 1 {
		t.Errorf("an instance whose context ended was kept: %+v", s)
	}
}

func hostileKernel(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: wat("kernel_header"), Limits: host.Limits{Instances: 1}})
	for _, export := range []string{"used", "size"} {
		_, _ = m.Call(t.Context(), export, nil) // Whether it is noticed at once is the engine's business.
		call(t, m, "ok", "input of the next call", "")
	}
	_, err := m.Call(t.Context(), "far", nil)
	_ = wantTrap(t, err, host.TrapFault)
	call(t, m, "ok", "", "")
}

func hostileGrants(t *testing.T, e string) {
	t.Helper()
	get := func(m *host.Module, export string) string {
		out, err := m.Call(t.Context(), export, nil)
		if err != nil || len(out) != 8 {
			t.Fatalf("%s: %q, %v", export, out, err)
		}
		return string(out)
	}
	one := load(t, e, host.Spec{Path: wat("state")})
	two := load(t, e, host.Spec{Path: wat("state")})
	real1 := load(t, e, host.Spec{Path: wat("state"), Grants: host.Grants{Clock: true, Random: true}})
	real2 := load(t, e, host.Spec{Path: wat("state"), Grants: host.Grants{Clock: true, Random: true}})
	for _, export := range []string{"random", "clock"} {
		if a, b := get(one, export), get(two, export); a != b {
			t.Errorf("%s differs without a grant: %x, %x", export, a, b)
		}
		if a, b := get(real1, export), get(real2, export); a == b {
			t.Errorf("%s is the same with a grant: %x", export, a)
		}
	}
}

// hostileDescribe breaks in describe, which an engine may call before anybody asks
// for it: the load ends in time, other exports work and find nothing of it.
func hostileDescribe(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: wat("describe_trap"), Limits: host.Limits{Instances: 1}})
	for range 2 {
		call(t, m, "left", "", "")
		_, err := m.Call(t.Context(), "describe", nil)
		_ = wantTrap(t, err, host.TrapFault)
	}
	call(t, m, "left", "", "")
	limits := host.Limits{Instances: 1, InitTimeout: 500 * time.Millisecond, Timeout: time.Minute}
	m = load(t, e, host.Spec{Path: wat("describe_spin"), Limits: limits})
	call(t, m, "ok", "", "")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := m.Call(ctx, "describe", nil)
	wantDeadline(t, err)
	call(t, m, "ok", "", "")
	// No generation takes over without describing itself.
	limits.Timeout = 200 * time.Millisecond
	good := load(t, e, host.Spec{Name: "policy", Path: wat("generation")})
	for _, bad := range []string{"describe_trap", "describe_spin"} {
		_, err := good.Swap(t.Context(), host.Spec{Path: wat(bad), Limits: limits}, host.SwapOptions{})
		if err == nil || !strings.Contains(err.Error(), `the generation in use stays: probe "describe": `) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	call(t, good, "work", "", "1")
}

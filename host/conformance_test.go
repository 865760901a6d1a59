package host_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	logcap "github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// TestConformance holds the behaviours of go-sdk's own modules, on every engine.
func TestConformance(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		t.Run("plain", func(t *testing.T) { t.Parallel(); conformPlain(t, e) })
		t.Run("count_vowels", func(t *testing.T) { t.Parallel(); conformVowels(t, e) })
		t.Run("fail", func(t *testing.T) { t.Parallel(); conformFail(t, e) })
		t.Run("exit", func(t *testing.T) { t.Parallel(); conformExit(t, e) })
		t.Run("config", func(t *testing.T) { t.Parallel(); conformConfig(t, e) })
		t.Run("var", func(t *testing.T) { t.Parallel(); conformVar(t, e) })
		t.Run("sleep", func(t *testing.T) { t.Parallel(); conformSleep(t, e) })
		t.Run("log", func(t *testing.T) { t.Parallel(); conformLog(t, e) })
		t.Run("haskell", func(t *testing.T) { t.Parallel(); conformHaskell(t, e) })
		t.Run("go", func(t *testing.T) { t.Parallel(); conformGo(t, e) })
		t.Run("files", func(t *testing.T) { t.Parallel(); conformFiles(t, e) })
		t.Run("mounts", func(t *testing.T) { t.Parallel(); conformMounts(t, e) })
		t.Run("http", func(t *testing.T) { t.Parallel(); conformHTTP(t, e) })
		t.Run("functions", func(t *testing.T) { t.Parallel(); conformFunctions(t, e) })
		t.Run("refused", func(t *testing.T) { t.Parallel(); conformRefused(t, e) })
		t.Run("sizes", func(t *testing.T) { t.Parallel(); conformSizes(t, e) })
	})
}

func conformPlain(t *testing.T, e string) {
	t.Helper()
	call(t, load(t, e, host.Spec{Path: peer(t, "hello")}), "run_test", "", "Hello, world!")
	if e == "native" || !testskip.UnderRace { // go-sdk takes minutes under the race detector
		call(t, load(t, e, host.Spec{Path: peer(t, "alloc"), Limits: host.Limits{Timeout: 10 * time.Minute}}), "run_test", "", "")
	}
	call(t, load(t, e, host.Spec{Path: peer(t, "noop")}), "run_test", "", "")
	call(t, load(t, e, host.Spec{Path: peer(t, "replace")}), "run_test", "nothing of that", "nothing of that")
	out, err := load(t, e, host.Spec{Path: peer(t, "input_offset")}).Call(t.Context(), "input_offset_length", []byte("hello world"))
	if err != nil || !bytes.Equal(out, []byte{11, 0, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("input_offset: % x, %v", out, err)
	}
	// What a guest prints goes nowhere.
	call(t, load(t, e, host.Spec{Path: peer(t, "println")}), "run_test", "", "")
}

func conformVowels(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: peer(t, "count_vowels"), Limits: host.Limits{Instances: 3}, Require: []string{"count_vowels"}})
	var wg sync.WaitGroup
	for range 25 {
		wg.Go(func() {
			for input, n := range map[string]int{"hello world": 3, "aaaaaa": 6, "": 0, "bbbbbbb": 0} {
				out, err := m.Call(t.Context(), "count_vowels", []byte(input))
				// The total lives in a variable. Guests keep nothing, so it never adds up.
				want := fmt.Sprintf(`{"count":%d,"total":%d,"vowels":"aeiouAEIOU"}`, n, n)
				if err != nil || string(out) != want {
					t.Errorf("%q: %s, %v; want %s", input, out, err, want)
				}
			}
		})
	}
	wg.Wait()
	first, err := m.Call(t.Context(), "count_vowels", []byte("hello world"))
	if err != nil {
		t.Fatal(err)
	}
	kept := string(first)
	if _, err := m.Call(t.Context(), "count_vowels", []byte("aaaaaa")); err != nil || string(first) != kept {
		t.Errorf("a later call changed an earlier output: %s, %v", first, err)
	}
	if _, err := m.Call(t.Context(), "i_dont_exist", nil); !errors.Is(err, host.ErrNoExport) {
		t.Errorf("unknown export: %v", err)
	}
}

func conformFail(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: peer(t, "fail")})
	_, err := m.Call(t.Context(), "run_test", nil)
	var refused *host.GuestError
	if !errors.As(err, &refused) || refused.Code != 1 || refused.Message != "Some error message" {
		t.Fatalf("%#v", err)
	}
	want := `host: module "fail" export "run_test": refused with code 1: Some error message`
	if err.Error() != want {
		t.Errorf("got %s\nwant %s", err, want)
	}
	if s := m.Stats(); s.Refusals != 1 || s.Failures != 1 || s.Replaced != 0 || s.Instances != 1 {
		t.Errorf("a refusal must keep its instance: %+v", s)
	}
}

func conformExit(t *testing.T, e string) {
	t.Helper()
	for text, code := range map[string]uint32{"500": 500, "2": 2, "1": 1, "0": 0} {
		m := load(t, e, host.Spec{Path: peer(t, "exit"), Grants: host.Grants{Config: map[string]string{"code": text}}})
		_, err := m.Call(t.Context(), "_start", nil)
		var trap *host.TrapError
		switch {
		case code == 0 && err != nil:
			t.Errorf("exit 0: %v", err)
		case code != 0 && (!errors.As(err, &trap) || trap.Kind != host.TrapExit || trap.ExitCode != code):
			t.Errorf("exit %s: %v", text, err)
		}
		// A module that has exited is gone; the next call gets a new instance.
		_, again := m.Call(t.Context(), "_start", nil)
		if (again == nil) != (err == nil) || m.Stats().Replaced != 2 {
			t.Errorf("exit %s again: %v, %+v", text, again, m.Stats())
		}
	}
}

func conformConfig(t *testing.T, e string) {
	t.Helper()
	call(t, load(t, e, host.Spec{Path: peer(t, "config"), Grants: host.Grants{Config: map[string]string{"thing": "hello"}}}),
		"run_test", "", `{"config": "hello"}`)
	call(t, load(t, e, host.Spec{Path: peer(t, "config")}), "run_test", "", `{"config": "<unset by host>"}`)
}

func conformVar(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{Path: peer(t, "var"), Limits: host.Limits{Instances: 1}})
	for range 3 {
		// The module doubles a variable that it starts at 0 or finds. Nothing is found.
		first, err := m.Call(t.Context(), "run_test", nil)
		if err != nil {
			t.Fatal(err)
		}
		call(t, m, "run_test", "", string(first))
	}
	small := load(t, e, host.Spec{Path: peer(t, "var"), Limits: host.Limits{VarBytes: 1}})
	_, err := small.Call(t.Context(), "run_test", nil)
	var trap *host.TrapError
	if !errors.As(err, &trap) || trap.Kind != host.TrapFault || !strings.Contains(trap.Detail, "ariable") {
		t.Errorf("variables above the limit: %v", err)
	}
}

func conformSleep(t *testing.T, e string) {
	t.Helper()
	// The real clock is granted, or the guest believes that 3 seconds are over at once.
	m := load(t, e, host.Spec{
		Path:   peer(t, "sleep"),
		Limits: host.Limits{Timeout: 100 * time.Millisecond},
		Grants: host.Grants{Clock: true, Config: map[string]string{"duration": "30"}},
	})
	_, err := m.Call(t.Context(), "run_test", nil)
	wantDeadline(t, err)
	if want := "deadline: Limits.Timeout is 100ms: out of time"; !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

// logs grants the log, or nothing.
func logs(granted bool) host.Grants {
	if granted {
		return host.Grants{Capabilities: []host.Capability{logcap.Grant{}}}
	}
	return host.Grants{}
}

func conformLog(t *testing.T, e string) {
	t.Helper()
	var lines logBuffer
	h := newHost(t, host.Config{Engine: hosttest.Engine(e), Logger: logger(&lines, slog.LevelDebug)})
	for _, granted := range []bool{false, true} {
		m, err := h.Load(t.Context(), host.Spec{Path: peer(t, "log"), Grants: logs(granted)})
		if err != nil {
			t.Fatal(err)
		}
		call(t, m, "run_test", "", "")
		if got := strings.Count(lines.String(), `msg="guest log"`); (got > 0) != granted {
			t.Errorf("granted %t: %d lines\n%s", granted, got, lines.String())
		}
	}
	for _, want := range []string{
		`level=ERROR msg="guest log" module=log export=run_test text="this is an error log"`,
		`level=WARN`, `level=INFO`, `level=DEBUG`,
	} {
		if !strings.Contains(lines.String(), want) {
			t.Errorf("no %s in\n%s", want, lines.String())
		}
	}
	if strings.Contains(lines.String(), "Calling function") {
		t.Errorf("the engine's own messages were passed on:\n%s", lines.String())
	}
}

func conformHaskell(t *testing.T, e string) {
	t.Helper()
	m := load(t, e, host.Spec{
		Path:   peer(t, "hello_haskell"),
		Grants: host.Grants{Config: map[string]string{"greeting": "Howdy"}},
	})
	for range 2 { // Its runtime is initialised once, before the first call.
		call(t, m, "testing", "John", "Howdy, John")
	}
}

func conformGo(t *testing.T, e string) {
	t.Helper()
	command := load(t, e, host.Spec{Path: peer(t, "std_command")})
	for range 2 { // It exits after each call.
		out, err := command.Call(t.Context(), "_start", []byte("hello world"))
		if err != nil || !strings.Contains(string(out), "hello world") {
			t.Errorf("std_command: %q, %v", out, err)
		}
	}
	call(t, load(t, e, host.Spec{Path: peer(t, "count_vowels_std")}), "_start", "hello world",
		`{"count": 3, "config": "<unset by host>", "a": "this is var a"}`)
}

func conformFiles(t *testing.T, e string) {
	t.Helper()
	for _, name := range []string{"fs", "fs_std"} {
		m := load(t, e, host.Spec{Path: peer(t, name)})
		_, err := m.Call(t.Context(), "run_test", nil)
		var refused *host.GuestError
		if !errors.As(err, &refused) || refused.Code != 1 {
			t.Errorf("%s read a file without a grant: %v", name, err)
		}
	}
	// The file exists on the host; the guest is not given any folder.
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := load(t, e, host.Spec{Path: peer(t, "read_write"), Grants: host.Grants{Config: map[string]string{"path": file}}})
	for _, export := range []string{"try_read", "try_write"} {
		out, err := m.Call(t.Context(), export, []byte("changed"))
		var refused *host.GuestError
		if !errors.As(err, &refused) || !strings.Contains(refused.Message, "failed to find a pre-opened file descriptor") {
			t.Errorf("%s without a grant: %q, %v", export, out, err)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "secret" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

func conformRefused(t *testing.T, e string) {
	t.Helper()
	h := newHost(t, host.Config{Engine: hosttest.Engine(e)})
	for name, want := range map[string]string{
		"http":           "imports extism:host/env.http_request, which needs the capability http",
		"http_headers":   "imports extism:host/env.http_request, which needs the capability http",
		"host":           "imports extism:host/user.mult, which is not offered",
		"main":           "imports lib.capitalize, which is not offered",
		"nested.c.instr": "imports dylibso_observe.instrument_enter, which is not offered",
	} {
		_, err := h.Load(t.Context(), host.Spec{Path: peer(t, name)})
		var bad *host.LoadError
		if !errors.As(err, &bad) || !errors.Is(err, host.ErrImport) || bad.Problem != want || bad.Hint == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// conformSizes echoes inputs around every boundary, bulk and word by word.
func conformSizes(t *testing.T, e string) {
	t.Helper()
	for _, name := range []string{"echo", "echo_pdk"} {
		m := load(t, e, host.Spec{Path: wat(name), Limits: host.Limits{Timeout: 20 * time.Second}})
		for _, n := range []int{0, 1, 7, 8, 9, 63, 64, 65, 255, 256, 263, 4095, 4096, 4097, 65535, 65536, 65537, 200000} {
			in := make([]byte, n)
			for i := range in {
				in[i] = byte(i*7 + i>>8)
			}
			out, err := m.Call(t.Context(), "echo", in)
			if err != nil || !bytes.Equal(out, in) || out == nil {
				t.Errorf("%s: %d bytes came back as %d, %v", name, n, len(out), err)
			}
		}
	}
}

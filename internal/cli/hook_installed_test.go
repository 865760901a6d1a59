//go:build linux

package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/internal/exit"
)

// hookRig is the built program with its client, and a project whose agent writes where it likes in it.
type hookRig struct {
	*hookPlace

	bin, guard, redact string
	events             int
}

func newHookRig(t *testing.T) *hookRig {
	t.Helper()
	bin := t.TempDir()
	build(t, bin)
	r := &hookRig{hookPlace: newHookPlace(t), bin: bin}
	r.client = filepath.Join(r.bin, "mortise-hook")
	t.Cleanup(r.stop)
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "guests", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	t.Setenv("XDG_CACHE_HOME", r.cache)
	r.guard, r.redact = read("guard.wasm"), read("redact.wasm")
	return r
}

// project writes the files of the project, as its agent could.
func (r *hookRig) project(module, more string) {
	r.t.Helper()
	text := "version: 1\nplugins:\n  - {name: guard, module: guard.wasm" + more + "}\n"
	for path, text := range map[string]string{r.config: text, filepath.Join(filepath.Dir(r.config), "guard.wasm"): module} {
		if err := errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path)); err != nil {
			r.t.Fatal(err)
		}
	}
}

// mortise runs the program.
func (r *hookRig) mortise(args ...string) string {
	r.t.Helper()
	out, err := exec.CommandContext(r.t.Context(), filepath.Join(r.bin, "mortise"), append(args, "--config", r.config, "--profile", r.profile)...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %v: %s", args, err, out)
	}
	return string(out)
}

// gate sends the event before a dangerous command through the client, which starts the daemon.
func (r *hookRig) gate(env ...string) string {
	r.t.Helper()
	r.events++
	cmd := exec.CommandContext(r.t.Context(), r.client, r.profile, "claude", "PreToolUse", "closed")
	cmd.Env = append(append(os.Environ(), "MORTISE_HOOK_WAIT_MS=25000"), env...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf(`{"session_id":"s","cwd":"/w","tool_name":"Bash","tool_use_id":"c%d","tool_input":{"command":"rm -rf /"}}`, r.events))
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// stop ends the daemon.
func (r *hookRig) stop() {
	conn, err := frame.Dial(filepath.Join(r.profile, "socket"))
	if err != nil {
		return
	}
	defer conn.Close()
	raw, err := conn.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		if peer, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			_ = syscall.Kill(int(peer.Pid), syscall.SIGKILL)
		}
	})
}

// TestHook_init: the config of mortise init is all that a user needs to have dangerous commands blocked.
func TestHook_init(t *testing.T) { //nolint:paralleltest // it sets the environment
	r := newHookRig(t)
	if err := os.Remove(r.config); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(r.bin, "mortise"), "init", "--config", r.config).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out := r.mortise("hook", "install", "claude"); !strings.Contains(out, "guard") || !strings.Contains(out, "plugin redact reads texts alone: images") {
		t.Error(out)
	}
	if out := r.gate(); !strings.Contains(out, "guard: rule") {
		t.Error(out)
	}
	if out := r.mortise("hook", "list"); strings.Contains(out, "not what is installed") {
		t.Error(out)
	}
}

// TestHook_installed: what the user installed runs, whatever becomes of the project's files, in a running daemon and in a new one; list,
// doctor and stats name what differs, and another install takes it over. With --follow the files themselves count.
func TestHook_installed(t *testing.T) { //nolint:paralleltest // it sets the environment
	r := newHookRig(t)
	const blocks, open = "guard: rule", "{}"
	elsewhere := t.TempDir() // where variables lead that a project sets for its agent
	hostile := []string{"MORTISE_CONFIG=" + filepath.Join(elsewhere, "mortise.yaml")}
	for _, name := range []string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"} {
		hostile = append(hostile, name+"="+elsewhere)
	}
	r.project(r.guard, "")
	if out := r.mortise("hook", "install", "claude"); strings.Contains(out, "--follow") {
		t.Error(out)
	}
	config, module := r.config, filepath.Join(filepath.Dir(r.config), "guard.wasm")
	for _, tc := range []struct{ what, module, more, changed string }{
		{"as installed", r.guard, "", ""},
		{"a plugin that is switched off", r.guard, ", disabled: true", config},
		{"a module that blocks nothing", r.redact, "", module},
		{"both", r.redact, ", priority: 7", module + ", " + config},
		{"no config", "", "}}", module + ", " + config},
	} {
		r.project(tc.module, tc.more)
		for _, daemon := range []string{"running", "new"} {
			if out := r.gate(hostile...); !strings.Contains(out, blocks) {
				t.Errorf("%s, %s daemon: %s", tc.what, daemon, out)
			}
			r.stop()
		}
		for _, args := range [][]string{{"hook", "list"}, {"hook", "stats"}, {"hook", "doctor", "claude"}} {
			if out := r.mortise(args...); strings.Contains(out, tc.changed+": not what is installed") != (tc.changed != "") {
				t.Errorf("%s: %v: %s", tc.what, args, out)
			}
		}
	}
	if err := errors.Join(os.Remove(config), syscall.Mkfifo(config, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, list := r.gate(), r.mortise("hook", "list"); !strings.Contains(out, blocks) || !strings.Contains(list, config+": not what") {
		t.Errorf("a pipe without a writer: %s %s", out, list)
	}
	if files, err := os.ReadDir(elsewhere); err != nil || len(files) > 0 {
		t.Errorf("the daemon followed variables: %v, %v", files, err)
	}
	if log, err := os.ReadFile(filepath.Join(r.profile, frame.LogFile)); err != nil || strings.Count(string(log), module) == 0 {
		t.Errorf("%v: the daemon's log: %s", err, log)
	}
	r.project(r.guard, ", disabled: true")
	if out := r.gate(); !strings.Contains(out, blocks) {
		t.Errorf("before install: %s", out)
	}
	r.project(r.redact, "")
	r.mortise("hook", "install", "claude")
	if out := r.gate(); out != open {
		t.Errorf("taken over: %s", out)
	}
	r.project(r.guard, "")
	if out := r.mortise("hook", "install", "claude", "--follow"); !strings.Contains(out, "anything that can write them decides") {
		t.Error(out)
	}
	for _, module := range []string{r.guard, r.redact, r.guard} {
		r.project(module, "")
		if out := r.gate(); strings.Contains(out, blocks) != (module == r.guard) {
			t.Errorf("followed: %s", out)
		}
	}
	if out := r.mortise("hook", "list"); !strings.Contains(out, "--follow: the files themselves count") {
		t.Error(out)
	}
	r.stop()
	r.project(r.redact, "")
	if err := os.Remove(filepath.Join(r.profile, "installed.json")); err != nil {
		t.Fatal(err)
	}
	if out := r.gate(); !strings.Contains(out, "could not ask the plugins") {
		t.Errorf("without an installation: %s", out)
	}
}

// TestHook_copies: the copies are their user's alone, are found damaged, and go when others are installed. Compiled code may not be
// where the config is.
func TestHook_copies(t *testing.T) { //nolint:paralleltest // it sets the environment
	p := newHookPlace(t)
	p.run(exit.OK, "hook", "install", "claude")
	copies, err := filepath.Glob(filepath.Join(p.profile, "installed", "*", "*"))
	if err != nil || len(copies) != 3 {
		t.Fatalf("%v, %v", copies, err)
	}
	for _, path := range copies {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		if info, err := os.Stat(filepath.Dir(path)); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", filepath.Dir(path), info.Mode(), err)
		}
		good, err := os.ReadFile(path)
		if err = errors.Join(err, os.WriteFile(path, append(good, '\n'), 0o600)); err != nil {
			t.Fatal(err)
		}
		p.run(exit.Config, "hook", "list")
		if err := os.WriteFile(path, good, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(p.config)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		if err := os.WriteFile(p.config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.Replace(string(text), "cache_dir: "+p.cache, "cache_dir: cache", 1))
	if out := p.run(exit.Config, "hook", "install", "claude"); !strings.Contains(out, "compiled code in the folder of the config") {
		t.Error(out)
	}
	write(string(text[:strings.LastIndex(string(text), "  - {name: redact")]))
	p.run(exit.OK, "hook", "install", "claude")
	if now, err := filepath.Glob(filepath.Join(p.profile, "installed", "*", "*")); err != nil || len(now) != 2 {
		t.Errorf("%v, %v", now, err)
	}
}

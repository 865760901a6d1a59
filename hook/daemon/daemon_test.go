//go:build linux

package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/phases"
)

var client = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mortise-hook-*")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "mortise-hook")
	out, err := exec.Command("go", "build", "-ldflags=-s -w", "-trimpath", "-o", path, "../../cmd/mortise-hook").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return path, nil
})

// TestMain is also a daemon in a process of its own, when variables say so.
func TestMain(m *testing.M) {
	killtest.Child("record", recording)
	if dir := os.Getenv("MORTISE_TEST_DAEMON"); dir != "" {
		p := &place{dir: dir, plugins: []phases.Plugin{counter(), guard(), slow(func() { _ = os.WriteFile(filepath.Join(dir, hangs), nil, 0o600) })}}
		d, err := daemon.New(p.config())
		if errors.Is(err, daemon.ErrRunning) {
			return
		}
		if err == nil {
			err = d.Serve(context.Background())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

type native struct {
	d  abi.Description
	fn func(ctx context.Context, e *abi.Event) (*abi.Reply, error)
}

func (n *native) Describe() abi.Description { return n.d }

func (n *native) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) { return n.fn(ctx, e) }

func command(e *abi.Event) string {
	args, _ := e.Call.Arguments.(map[string]any)
	s, _ := args["command"].(string)
	return s
}

// counter counts the calls of a session and puts the number in the context.
func counter() *native {
	return &native{
		d: abi.Description{
			Name: "counter", Version: "1", State: []abi.StateKey{{Name: "n", Scope: abi.ScopeThread}},
			Hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeTransform}},
		},
		fn: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			n, _ := e.State["n"].(int64)
			m := &abi.ContextMessage{Key: "n", Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("n=%d.", n+1))}}
			return &abi.Reply{
				Updates: []abi.Update{{Key: "n", Op: abi.OpSet, Value: n + 1}}, Effects: []abi.Effect{{Type: abi.EffectAddContext, Context: m}},
			}, nil
		},
	}
}

func guard() *native {
	return &native{
		d: abi.Description{Name: "guard", Version: "1", Hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}}},
		fn: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			if strings.Contains(command(e), "forbidden") {
				return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "forbidden"}}, nil
			}
			return nil, nil
		},
	}
}

// hangs is the file of a place that makes the plugin of its daemon hang.
const hangs = "hangs"

// slow says so and does not come back for a while when the command says so, whatever its context is.
func slow(begins func()) *native {
	return &native{
		d: abi.Description{Name: "slow", Version: "1", Hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}}},
		fn: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			if strings.Contains(command(e), "hang") {
				begins()
				time.Sleep(20 * time.Second)
			}
			return nil, nil
		},
	}
}

// place is the folder of a profile.
type place struct {
	dir     string
	plugins []phases.Plugin
	load    func() error
}

func (p *place) program() (*hook.Program, error) {
	trace := hook.NewTrace()
	r, err := phases.New(phases.Config{Plugins: p.plugins, Record: trace.Record, HookTimeout: 10 * time.Second})
	if err != nil {
		return nil, err
	}
	out := &hook.Program{Runtime: r, Trace: trace, RepairTokens: -1}
	for _, pl := range p.plugins {
		out.Plugins = append(out.Plugins, pl.Describe())
	}
	return out, nil
}

func (p *place) socket() string { return filepath.Join(p.dir, "socket") }

func (p *place) policy(program *hook.Program) *frame.Policy {
	self, _ := os.Executable()
	// A daemon that is started without the variable is none, and runs no tests either.
	out := &frame.Policy{Daemon: []string{self, "-test.run=^$"}, Env: []string{"MORTISE_TEST_DAEMON"}}
	for _, name := range hook.Dialects() {
		d, _ := hook.DialectOf(name)
		for event, spec := range d.Events {
			closed := spec.Gate
			if program != nil {
				closed = program.Closed(spec)
			}
			stdout, _ := d.PolicyOutput(spec, closed, "by policy")
			out.Rules = append(out.Rules, frame.Rule{Dialect: name, Event: event, Closed: closed, Stdout: stdout})
		}
	}
	return out
}

func (p *place) config() daemon.Config {
	return daemon.Config{
		Dir: p.dir, Idle: time.Minute,
		Load: func(context.Context) (*daemon.Loaded, error) {
			if p.load != nil {
				if err := p.load(); err != nil {
					return nil, err
				}
			}
			program, err := p.program()
			return &daemon.Loaded{Program: program}, err
		},
		Policy: func(l *daemon.Loaded) *frame.Policy {
			if l == nil {
				return p.policy(nil)
			}
			return p.policy(l.Program)
		},
	}
}

func newPlace(tb testing.TB, plugins ...phases.Plugin) *place {
	tb.Helper()
	dir, err := os.MkdirTemp("", "hk") //nolint:usetesting // short, for the socket
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	p := &place{dir: dir, plugins: plugins}
	program, err := p.program()
	if err != nil {
		tb.Fatal(err)
	}
	if err := hook.WriteFile(filepath.Join(dir, frame.PolicyFile), p.policy(program).Marshal()); err != nil {
		tb.Fatal(err)
	}
	return p
}

func (p *place) serve(tb testing.TB) {
	tb.Helper()
	d, err := daemon.New(p.config())
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- d.Serve(ctx) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	})
	p.listens(tb)
}

// listens waits until a daemon does.
func (p *place) listens(tb testing.TB) {
	tb.Helper()
	for end := time.Now().Add(long); daemonOf(p.socket()) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			tb.Fatal("no daemon listens")
		}
	}
}

type outcome struct {
	stdout, stderr string
	exit           int
	took           time.Duration
}

// call runs the client as an agent does. Waits are long: other tests need the machine, too.
func (p *place) call(tb testing.TB, wait time.Duration, dialect, event string, stdin []byte, env ...string) outcome {
	tb.Helper()
	path, err := client()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(path, p.dir, dialect, event, "closed")
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	cmd.Env = append(os.Environ(), fmt.Sprintf("MORTISE_HOOK_WAIT_MS=%d", wait.Milliseconds()))
	cmd.Env = append(cmd.Env, env...)
	start := time.Now()
	err = cmd.Run()
	out := outcome{stdout.String(), stderr.String(), 0, time.Since(start)}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		out.exit = exit.ExitCode()
	} else if err != nil {
		tb.Fatal(err)
	}
	if out.stderr != "" {
		tb.Errorf("standard error: %s", out.stderr)
	}
	return out
}

const long = 25 * time.Second

func bash(id int, command string) []byte {
	b, _ := json.Marshal(map[string]any{
		"session_id": "s", "cwd": "/w", "tool_name": "Bash", "tool_use_id": fmt.Sprint("c", id), "tool_input": map[string]any{"command": command},
	})
	return b
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	p := newPlace(t, counter(), guard())
	p.serve(t)
	if o := p.call(t, long, "claude", "PreToolUse", bash(1, "ls")); !strings.Contains(o.stdout, "n=1.") || o.exit != 0 {
		t.Errorf("%+v", o)
	}
	if o := p.call(t, long, "codex", "PreToolUse", bash(2, "forbidden")); !strings.Contains(o.stdout, `"deny"`) || o.exit != 0 {
		t.Errorf("%+v", o)
	}
	if o := p.call(t, long, "goose", "PreToolUse", bash(3, "ls")); o.stdout != "" || o.exit != 0 {
		t.Errorf("%+v", o)
	}
	if o := p.call(t, time.Millisecond, "codex", "PreToolUse", bash(4, "forbidden")); !strings.Contains(o.stdout, "forbidden") {
		t.Errorf("a variable of the agent shortens the wait: %+v", o)
	}
}

// TestParallel: 20 events at once, and none is lost.
func TestParallel(t *testing.T) {
	t.Parallel()
	p := newPlace(t, counter(), guard())
	p.serve(t)
	outs := make([]outcome, 20)
	var wg sync.WaitGroup
	for i := range outs {
		wg.Go(func() { outs[i] = p.call(t, long, "claude", "PreToolUse", bash(i, "ls")) })
	}
	wg.Wait()
	for n := range outs {
		want := fmt.Sprintf("n=%d.", n+1)
		if !slices.ContainsFunc(outs, func(o outcome) bool { return strings.Contains(o.stdout, want) }) {
			t.Errorf("%s is missing", want)
		}
	}
}

// TestKilled: a daemon that is killed in a call is replaced by a policy answer soon, and then by a new daemon that has the state of all
// that was answered.
func TestKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t, counter(), guard(), slow(func() {}))
	env := "MORTISE_TEST_DAEMON=" + p.dir
	for i := range 3 {
		if o := p.call(t, long, "claude", "PreToolUse", bash(i, "ls"), env); !strings.Contains(o.stdout, fmt.Sprintf("n=%d.", i+1)) {
			t.Fatalf("the client starts a daemon: %+v", o)
		}
	}
	answered := make(chan outcome, 1)
	go func() { answered <- p.call(t, long, "claude", "PreToolUse", bash(90, "hang"), env) }()
	for end := time.Now().Add(long); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.dir, hangs)); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the call does not get to the plugin")
		}
	}
	if err := syscall.Kill(daemonOf(p.socket()), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	o := <-answered
	if since := time.Since(killed); since > long/2 || !strings.Contains(o.stdout, "by policy") || !strings.Contains(o.stdout, `"deny"`) {
		t.Errorf("%s after the kill: %+v", since, o)
	}
	if o := p.call(t, long, "claude", "PreToolUse", bash(91, "ls"), env); !strings.Contains(o.stdout, "n=4.") {
		data, _ := os.ReadFile(filepath.Join(p.dir, daemon.RecordFile))
		log, _ := os.ReadFile(filepath.Join(p.dir, frame.LogFile))
		t.Errorf("the next event: %+v\n%s\n%s", o, data, log)
	}
	if pid := daemonOf(p.socket()); pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// daemonOf is the process that listens on a socket, or 0.
func daemonOf(path string) int {
	c, err := frame.Dial(path)
	if err != nil {
		return 0
	}
	defer c.Close()
	raw, err := c.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if cred, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
	})
	return pid
}

// TestHang: a plugin that does not come back, or a daemon that does not answer at all, costs the client's wait at most. That is some
// seconds here, and not asserted to the second: the machine is shared.
func TestHang(t *testing.T) {
	t.Parallel()
	t.Run("plugin", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t, slow(func() {}))
		path, err := client()
		if err != nil || path == "" {
			t.Fatal(err)
		}
		d, err := daemon.New(p.config())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		go func() { _ = d.Serve(ctx) }()
		t.Cleanup(cancel)
		p.listens(t)
		if o := p.call(t, 5*time.Second, "claude", "PreToolUse", bash(1, "hang")); o.took > 15*time.Second || !strings.Contains(o.stdout, "by policy") {
			t.Errorf("%+v", o)
		}
	})
	t.Run("daemon", func(t *testing.T) {
		t.Parallel()
		p := newPlace(t, guard())
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: p.socket(), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if err := os.Chmod(p.socket(), 0o600); err != nil {
			t.Fatal(err)
		}
		if o := p.call(t, 5*time.Second, "codex", "PreToolUse", bash(1, "ls")); o.took > 15*time.Second || !strings.Contains(o.stdout, "by policy") {
			t.Errorf("%+v", o)
		}
	})
}

// TestGarbage: what is no event is answered by the policy.
func TestGarbage(t *testing.T) {
	t.Parallel()
	p := newPlace(t, guard())
	p.serve(t)
	for name, in := range map[string][]byte{
		"empty": nil, "text": []byte("hello"), "40 MiB": bytes.Repeat([]byte("x"), 40<<20), "30 MiB of JSON": []byte(`{"a":"` + strings.Repeat("x", 30<<20) + `"}`),
	} {
		if o := p.call(t, long, "claude", "PreToolUse", in); o.exit != 0 || !strings.Contains(o.stdout, "by policy") || !json.Valid([]byte(o.stdout)) {
			t.Errorf("%s: %.300v", name, o)
		}
		if o := p.call(t, long, "claude", "Stop", in); o.exit != 0 || o.stdout != "{}" {
			t.Errorf("%s, an open event: %.300v", name, o)
		}
	}
	// Frames that are none harm no other client.
	for _, raw := range [][]byte{nil, []byte("GET / HTTP/1.1\r\n\r\n"), {0, 0, 0, 1, 'x'}, {255, 255, 255, 255}} {
		c, err := frame.Dial(p.socket())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(raw)
		_ = c.Close()
	}
	if o := p.call(t, long, "claude", "PreToolUse", bash(1, "ls")); o.stdout != "{}" {
		t.Errorf("%+v", o)
	}
}

// TestForeign: what another user could control is refused.
func TestForeign(t *testing.T) {
	t.Parallel()
	p := newPlace(t, guard())
	p.serve(t)
	refused := func(what string) {
		t.Helper()
		if o := p.call(t, long, "claude", "PreToolUse", bash(1, "ls")); o.exit == 0 && !strings.Contains(o.stdout, "by policy") {
			t.Errorf("%s: %+v", what, o)
		}
	}
	if err := os.Chmod(p.dir, 0o755); err != nil { //nolint:gosec // that is the test
		t.Fatal(err)
	}
	refused("a folder that others may enter")
	if _, err := daemon.New(p.config()); !errors.Is(err, frame.ErrForeign) {
		t.Errorf("the daemon takes a folder that others may enter: %v", err)
	}
	if err := os.Chmod(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	moved := p.socket() + ".real"
	if err := errors.Join(os.Rename(p.socket(), moved), os.Symlink(moved, p.socket())); err != nil {
		t.Fatal(err)
	}
	refused("a link to a socket")
	if err := errors.Join(os.Remove(p.socket()), os.Rename(moved, p.socket())); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(p.socket(), 65534, 65534); err != nil {
			t.Fatal(err)
		}
		refused("a socket of another user")
		if err := os.Chown(p.socket(), 0, 0); err != nil {
			t.Fatal(err)
		}
	}
	if o := p.call(t, long, "claude", "PreToolUse", bash(1, "ls")); o.stdout != "{}" {
		t.Errorf("the test itself is wrong: %+v", o)
	}
}

// TestSecrets: tokens of the agent's environment are in no file of the profile, nor in the environment of the daemon.
func TestSecrets(t *testing.T) {
	t.Parallel()
	p := newPlace(t, counter(), guard())
	const token = "tok-93d1f0-very-secret"
	o := p.call(t, long, "claude", "PreToolUse", bash(1, "echo a-word-of-the-command forbidden"), "MORTISE_TEST_DAEMON="+p.dir, "ANTHROPIC_API_KEY="+token, "CLAUDE_CODE_SSE_TOKEN="+token)
	if !strings.Contains(o.stdout, "deny") {
		t.Fatalf("%+v", o)
	}
	pid := daemonOf(p.socket())
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(environ), token) {
		t.Error("the daemon has the token in its environment")
	}
	_ = syscall.Kill(pid, syscall.SIGTERM)
	for daemonOf(p.socket()) != 0 {
		time.Sleep(10 * time.Millisecond)
	}
	files := 0
	_ = filepath.WalkDir(p.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, s := range []string{token, "a-word-of-the-command"} {
			if strings.Contains(string(data), s) {
				t.Errorf("%s has %q in it", path, s)
			}
		}
		if info, err := d.Info(); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, or others may read it", path, err)
		}
		return nil
	})
	if files < 3 {
		t.Errorf("only %d files were read", files)
	}
}

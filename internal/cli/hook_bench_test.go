//go:build linux

package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/hook/frame"
)

// BenchmarkHookWasm is what an event costs an agent with plugins in WebAssembly: the client as a process, the daemon of mortise as
// another one, and 1, 3 and 10 plugins at the gate, over /bin/true in the same rounds.
func BenchmarkHookWasm(b *testing.B) {
	bin := b.TempDir()
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-trimpath", "-o", bin+"/", "../../cmd/...").CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	guard, err := filepath.Abs(filepath.Join("..", "..", "testdata", "guests", "guard.wasm"))
	if err != nil {
		b.Fatal(err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		b.Fatal(err)
	}
	for _, plugins := range []int{1, 3, 10} {
		b.Run(fmt.Sprintf("plugins=%d", plugins), func(b *testing.B) {
			dir, err := os.MkdirTemp("", "hb") //nolint:usetesting // short, for the socket
			if err != nil {
				b.Fatal(err)
			}
			defer os.RemoveAll(dir)
			text := "version: 1\ncache_dir: " + cache + "\nplugins:\n"
			for i := range plugins {
				text += fmt.Sprintf("  - {name: guard%d, module: %s}\n", i, guard)
			}
			config, profile := filepath.Join(dir, "mortise.yaml"), filepath.Join(dir, "p")
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				b.Fatal(err)
			}
			env := append(os.Environ(), "HOME="+dir, "MORTISE_HOOK_WAIT_MS=25000")
			install := exec.Command(bin+"/mortise", "hook", "install", "claude", "--config", config, "--profile", profile)
			install.Env = env
			if out, err := install.CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
			// A client that comes before the daemon listens would start another one, which outlives the benchmark.
			lock, err := frame.Lock(filepath.Join(profile, frame.StartFile))
			if err != nil || lock == nil {
				b.Fatalf("a client may start a daemon: %v", err)
			}
			defer lock.Close()
			daemon := exec.Command(bin+"/mortise", "hook", "daemon", "--config", config, "--profile", profile)
			daemon.Env, daemon.SysProcAttr = env, &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} // also when the benchmark is killed
			if err := daemon.Start(); err != nil {
				b.Fatal(err)
			}
			defer func() { _ = daemon.Process.Signal(os.Interrupt); _ = daemon.Wait() }()
			measureHook(b, plugins, env, bin+"/mortise-hook", profile)
		})
	}
}

// minEvents is from how many events on the median is held against its limit: make bench-once has one.
const minEvents = 50

func measureHook(b *testing.B, plugins int, env []string, client, profile string) {
	b.Helper()
	took := map[string][]time.Duration{}
	once := func(i int, name, program string, args ...string) {
		cmd := exec.Command(program, args...)
		var out bytes.Buffer
		event := fmt.Sprintf(`{"session_id":"s","cwd":"/w","tool_name":"Bash","tool_use_id":"c%d","tool_input":{"command":"rm -rf /"}}`, i)
		cmd.Env, cmd.Stdin, cmd.Stdout = env, strings.NewReader(event), &out
		start := time.Now()
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
		if took[name] = append(took[name], time.Since(start)); name == "hook" && (!strings.Contains(out.String(), "deny") || strings.Contains(out.String(), "did not answer")) {
			b.Fatalf("the plugins were not asked: %s", out.String())
		}
	}
	once(-1, "hook", client, profile, "claude", "PreToolUse", "closed") // loads the plugins
	took = map[string][]time.Duration{}
	for i := 0; b.Loop(); i++ {
		once(i, "true", "/bin/true")
		once(i, "hook", client, profile, "claude", "PreToolUse", "closed")
	}
	at := func(name string, share int) float64 {
		slices.Sort(took[name])
		return float64(took[name][len(took[name])*share/100].Microseconds()) / 1000
	}
	b.ReportMetric(at("true", 50), "true-p50-ms")
	b.ReportMetric(at("hook", 50), "hook-p50-ms")
	b.ReportMetric(at("hook", 99), "hook-p99-ms")
	over := at("hook", 50) - at("true", 50)
	b.ReportMetric(over, "over-p50-ms")
	if limit := max(3, at("true", 50)); plugins <= 3 && len(took["true"]) >= minEvents && over > limit { // on a loaded machine processes take longer
		b.Errorf("with %d plugins an event takes %.1f ms more than /bin/true, the limit is %.1f ms", plugins, over, limit)
	}
}

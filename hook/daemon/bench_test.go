//go:build linux

package daemon_test

import (
	"bytes"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// BenchmarkHook is what one event costs an agent: the client as a process, the daemon, and three plugins. BenchmarkTrue is the
// cost of a process that does nothing.
func BenchmarkHook(b *testing.B) {
	p := newPlace(b, counter(), guard(), slow(func() {}))
	p.serve(b)
	path, err := client()
	if err != nil {
		b.Fatal(err)
	}
	both := map[string][]time.Duration{}
	for i := 0; b.Loop(); i++ {
		for name, cmd := range map[string]*exec.Cmd{"true": exec.Command("/bin/true"), "hook": exec.Command(path, p.dir, "claude", "PreToolUse")} {
			cmd.Stdin = bytes.NewReader(bash(i, "ls"))
			if name == "hook" {
				cmd.Stdout = &bytes.Buffer{}
			}
			start := time.Now()
			if err := cmd.Run(); err != nil {
				b.Fatal(err)
			}
			both[name] = append(both[name], time.Since(start))
		}
	}
	for name, all := range both {
		slices.Sort(all)
		b.ReportMetric(float64(all[len(all)/2].Microseconds())/1000, name+"-p50-ms")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds())/1000, name+"-p99-ms")
	}
	b.ReportMetric(float64((both["hook"][len(both["hook"])/2]-both["true"][len(both["true"])/2]).Microseconds())/1000, "over-p50-ms")
}

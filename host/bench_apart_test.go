package host_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// entrantVar names the contestant that a process is, as contest:contestant.
const entrantVar = "MORTISE_BENCH_ENTRANT"

// TestEntrants has the contestants of the benchmarks take a turn, each in a process of
// its own. Such a process runs the same test, as the contestant.
func TestEntrants(t *testing.T) {
	t.Parallel()
	if is := os.Getenv(entrantVar); is != "" {
		contest, name, _ := strings.Cut(is, ":")
		takeTurns(t, entrants()[contest][name].enter(t))
		return
	}
	for _, contest := range []string{"empty", "fresh", "echo_pdk/4096", "echo_bulk/4096"} {
		for name := range entrants()[contest] {
			if c := enterApart(t, contest, name).turn(t, 2); c.wall <= 0 || c.cpu < 0 {
				t.Errorf("%s %s: %+v", contest, name, c)
			}
		}
	}
}

// takeTurns makes as many calls as each line of the input says, and writes what they
// took, until the input ends.
func takeTurns(t *testing.T, call contestant) {
	t.Helper()
	for range 3 {
		call() // caches fill, pages are learned
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		r := &runner{call: call}
		if _, err := fmt.Sscan(lines.Text(), &r.block); err != nil {
			t.Fatal(err)
		}
		r.turn()
		fmt.Println(turnPrefix, r.wall[0], r.cpu[0])
	}
}

// turnPrefix tells an answer from what else a test writes.
const turnPrefix = "TURN"

// apart is a contestant in a process of its own.
type apart struct {
	name    string
	in      io.Writer
	answers *bufio.Scanner
	// said is what it wrote besides its answers.
	said []string
}

// enterApart starts a contestant. It ends with the test.
func enterApart(tb testing.TB, contest, name string) *apart {
	tb.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(tb.Context()), os.Args[0], "-test.run=^TestEntrants$", "-test.count=1", "-test.timeout=0")
	cmd.Env = append(os.Environ(), entrantVar+"="+contest+":"+name)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	a := &apart{name: contest + " " + name, in: in, answers: bufio.NewScanner(out)}
	tb.Cleanup(func() {
		_ = in.Close()
		for a.answers.Scan() {
			a.said = append(a.said, a.answers.Text())
		}
		if err := cmd.Wait(); err != nil {
			tb.Errorf("%s: %v\n%s", a.name, err, strings.Join(a.said, "\n"))
		}
	})
	return a
}

// turn has it make as many calls.
func (a *apart) turn(tb testing.TB, calls int) cost {
	tb.Helper()
	if _, err := fmt.Fprintln(a.in, calls); err != nil {
		tb.Fatalf("%s: %v", a.name, err)
	}
	for a.answers.Scan() {
		if rest, ok := strings.CutPrefix(a.answers.Text(), turnPrefix); ok {
			var c cost
			if _, err := fmt.Sscan(rest, &c.wall, &c.cpu); err != nil {
				tb.Fatalf("%s: %v", a.name, err)
			}
			return c
		}
		a.said = append(a.said, a.answers.Text())
	}
	tb.Fatalf("%s ended early", a.name)
	return cost{}
}

// competeApart lets the contestants of a contest take turns, each in its process,
// reports and returns the median cost of a call of each.
func competeApart(b *testing.B, contest string) map[string]cost {
	b.Helper()
	all := entrants()[contest]
	names := slices.Sorted(maps.Keys(all))
	processes := make([]*apart, len(names))
	walls, cpus := make([][]float64, len(names)), make([][]float64, len(names))
	for n, name := range names {
		processes[n] = enterApart(b, contest, name)
		processes[n].turn(b, 3)
	}
	for b.Loop() {
		for n, p := range processes {
			c := p.turn(b, all[names[n]].block)
			walls[n], cpus[n] = append(walls[n], c.wall), append(cpus[n], c.cpu)
		}
	}
	costs := make([]cost, len(names))
	byName := make(map[string]cost, len(names))
	for n, name := range names {
		costs[n] = cost{median(walls[n]), median(cpus[n])}
		byName[name] = costs[n]
	}
	report(b, names, costs)
	return byName
}

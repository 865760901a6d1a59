// Command parity runs the tests that testdata/parity.tsv names, and
// prints how many of the behaviours to be shown are shown.
//
// A line is behaviour, package, test name and, where the behaviour differs on
// purpose, "differs: why", separated by tabs. A test that fails, is skipped or does not
// exist is an error.
//
// With arguments it runs go test with these instead, prints what go test would, and
// checks the list against all that passed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
)

const module = "github.com/mortise-dev/mortise/"

// total is the number of behaviours in the specification.
const total = 287

// line is one behaviour that is shown.
type line struct {
	behaviour, pkg, test string
	number               int
}

func main() {
	file := flag.String("file", "testdata/parity.tsv", "the list of behaviours shown")
	spec := flag.String("spec", "../shared/spec/parity.tsv", "the list of behaviours to be shown, checked if it is there")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *file, *spec, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, file, spec string, args []string) error {
	lines, err := read(file)
	if err != nil {
		return err
	}
	if err := known(lines, spec); err != nil {
		return err
	}
	if len(args) == 0 {
		args = testsOf(lines)
	}
	passed, failed := runTests(ctx, out, args)
	var missing []error
	for _, l := range lines {
		if !passed[l.pkg+"\t"+l.test] {
			missing = append(missing, fmt.Errorf("%s:%d: %s: %s %s did not run and pass", file, l.number, l.behaviour, l.pkg, l.test))
		}
	}
	if err := errors.Join(append(missing, failed)...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%d of %d\n", len(lines), total)
	return err
}

func read(file string) ([]line, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []line
	seen := make(map[string]int)
	scanner := bufio.NewScanner(f)
	for n := 1; scanner.Scan(); n++ {
		text := scanner.Text()
		if text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "behaviour\t") {
			continue
		}
		fields := strings.Split(text, "\t")
		if len(fields) != 3 && (len(fields) != 4 || !strings.HasPrefix(fields[3], "differs: ")) {
			return nil, fmt.Errorf("%s:%d: want behaviour, package, test and perhaps \"differs: why\", tabs between", file, n)
		}
		if first, ok := seen[fields[0]]; ok {
			return nil, fmt.Errorf("%s:%d: %s is in line %d already", file, n, fields[0], first)
		}
		seen[fields[0]] = n
		lines = append(lines, line{behaviour: fields[0], pkg: fields[1], test: fields[2], number: n})
	}
	return lines, scanner.Err()
}

// known checks the names against the specification, if it is at hand.
func known(lines []line, spec string) error {
	data, err := os.ReadFile(spec)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names := make(map[string]bool)
	for text := range strings.Lines(string(data)) {
		if fields := strings.Split(strings.TrimRight(text, "\n"), "\t"); len(fields) == 2 {
			names[fields[1]] = true
		}
	}
	for _, l := range lines {
		if !names[l.behaviour] {
			return fmt.Errorf("line %d: %s is no behaviour of the specification", l.number, l.behaviour)
		}
	}
	return nil
}

// testsOf are the arguments of go test for all tests that are named.
func testsOf(lines []line) []string {
	var names, packages []string
	for _, l := range lines {
		name, _, _ := strings.Cut(l.test, "/")
		names, packages = append(names, name), append(packages, "./"+l.pkg)
	}
	slices.Sort(names)
	slices.Sort(packages)
	args := []string{"-ldflags=-w", "-vet=off", "-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$"}
	return append(args, slices.Compact(packages)...)
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// runTests runs go test, and returns the tests that passed, by package and name. What packages say is printed, and what tests say that fail.
func runTests(ctx context.Context, out io.Writer, args []string) (passed map[string]bool, err error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	passed = map[string]bool{}
	said := map[string]string{}
	for decoder := json.NewDecoder(output); ; {
		var e event
		if decoder.Decode(&e) != nil {
			return passed, cmd.Wait()
		}
		at := strings.TrimPrefix(e.Package, module) + "\t" + e.Test
		switch {
		case e.Action == "build-output", e.Action == "output" && e.Test == "" && e.Output != "PASS\n":
			fmt.Fprint(out, e.Output)
		case e.Action == "output" && !strings.HasPrefix(e.Output, "=== "):
			said[at] += e.Output
		case e.Action == "fail":
			fmt.Fprint(out, said[at])
		case e.Action == "pass":
			passed[at] = true
			delete(said, at)
		}
	}
}

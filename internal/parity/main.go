// Command parity runs the tests that testdata/parity.tsv names, and
// prints how many of the behaviours to be shown are shown.
//
// A line is behaviour, package, test name and, where the behaviour differs on
// purpose, "differs: why", separated by tabs. A test that fails, is skipped or does not
// exist is an error.
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
	err := run(ctx, os.Stdout, *file, *spec)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, file, spec string) error {
	lines, err := read(file)
	if err != nil {
		return err
	}
	if err := known(lines, spec); err != nil {
		return err
	}
	passed, failed := runTests(ctx, lines)
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

// runTests runs the tests of all packages that are named, and returns those that passed, by package and name.
func runTests(ctx context.Context, lines []line) (passed map[string]bool, err error) {
	var names, packages []string
	for _, l := range lines {
		name, _, _ := strings.Cut(l.test, "/")
		names, packages = append(names, name), append(packages, "./"+l.pkg)
	}
	slices.Sort(names)
	slices.Sort(packages)
	args := []string{"test", "-json", "-ldflags=-w", "-vet=off", "-run", "^(" + strings.Join(slices.Compact(names), "|") + ")$"}
	cmd := exec.CommandContext(ctx, "go", append(args, slices.Compact(packages)...)...)
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
		var event struct{ Action, Package, Test, Output string }
		if decoder.Decode(&event) != nil {
			return passed, cmd.Wait()
		}
		at := strings.TrimPrefix(event.Package, module) + "\t" + event.Test
		switch event.Action {
		case "pass":
			passed[at] = true
		case "output":
			said[at] += event.Output
		case "fail":
			fmt.Fprint(os.Stderr, said[at])
		}
	}
}

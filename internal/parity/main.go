// Command parity runs exactly the tests that testdata/parity.tsv names, and
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
	"path/filepath"
	"slices"
	"strings"
)

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
	dir, err := os.MkdirTemp("", "parity")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	passed := make(map[string]bool)
	for _, pkg := range packages(lines) {
		if err := runPackage(ctx, dir, pkg, lines, passed); err != nil {
			return err
		}
	}
	var missing []error
	for _, l := range lines {
		if !passed[l.pkg+"\t"+l.test] {
			missing = append(missing, fmt.Errorf("%s:%d: %s: %s %s did not run and pass", file, l.number, l.behaviour, l.pkg, l.test))
		}
	}
	if len(missing) > 0 {
		return errors.Join(missing...)
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

func packages(lines []line) []string {
	var out []string
	for _, l := range lines {
		if !slices.Contains(out, l.pkg) {
			out = append(out, l.pkg)
		}
	}
	return out
}

// runPackage builds the package's test binary once and runs each named test.
func runPackage(ctx context.Context, dir, pkg string, lines []line, passed map[string]bool) error {
	binary := filepath.Join(dir, strings.ReplaceAll(pkg, "/", "_")+".test")
	build := exec.CommandContext(ctx, "go", "test", "-c", "-o", binary, "./"+pkg)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("%s: %w", pkg, err)
	}
	for _, l := range lines {
		if l.pkg != pkg || passed[pkg+"\t"+l.test] {
			continue
		}
		if err := runTest(ctx, binary, pkg, l.test, passed); err != nil {
			return err
		}
	}
	return nil
}

func runTest(ctx context.Context, binary, pkg, test string, passed map[string]bool) error {
	var pattern []string
	for part := range strings.SplitSeq(test, "/") {
		pattern = append(pattern, "^"+part+"$")
	}
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", binary, "-test.v=test2json", "-test.run", strings.Join(pattern, "/"))
	cmd.Dir = pkg
	cmd.Stderr = os.Stderr
	output, err := cmd.Output()
	var event struct{ Action, Test, Output string }
	decoder := json.NewDecoder(strings.NewReader(string(output)))
	for decoder.Decode(&event) == nil {
		if event.Action == "pass" && event.Test == test {
			passed[pkg+"\t"+test] = true
		}
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w\n%s", pkg, test, err, output)
	}
	return nil
}

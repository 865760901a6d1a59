// Command mutants breaks the product on purpose, one change at a time, and
// checks that the test that is to show the broken behaviour fails. A change is
// made through an overlay of go test: no file of the tree is written.
//
// The list says for each mutation its id, the row of testdata/parity.tsv that it
// breaks, the file, the package and the -run pattern of the test, the folder of
// the module that the package is in if that is another, how often the test runs if
// not once, then the old and the new text. The old text must occur in the file exactly once. A mutation
// that survives, does not compile, no longer applies or runs no test is an error.
package main

import (
	"bytes"
	"cmp"
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
	"regexp"
	"strings"
	"time"
)

func main() {
	list := flag.String("list", filepath.Join("testdata", "mutants.txt"), "the mutations")
	only := flag.String("only", "", "run the mutations whose id matches this pattern")
	verbose := flag.Bool("v", false, "print what the tests say")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *list, *only, *verbose)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, list, only string, verbose bool) error {
	data, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	all, err := parse(string(data))
	if err != nil {
		return fmt.Errorf("%s: %w", list, err)
	}
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	killed, total := 0, 0
	var failed []error
	for _, m := range all {
		if !chosen.MatchString(m.id) {
			continue
		}
		err := m.report(ctx, out, dir, verbose)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		total++
		if err == nil {
			killed++
		}
		failed = append(failed, err)
	}
	if _, err := fmt.Fprintf(out, "%d of %d killed\n", killed, total); err != nil {
		return err
	}
	if total == 0 {
		failed = append(failed, errors.New("no mutation was run"))
	}
	return errors.Join(failed...)
}

// report tries a mutation and prints what became of it. One that is not killed is
// an error.
func (m *mutation) report(ctx context.Context, out io.Writer, dir string, verbose bool) error {
	start := time.Now()
	verdict, said := m.try(ctx, dir)
	if _, err := fmt.Fprintf(out, "%-8s %-32s %6.1fs  %s\n", m.id, verdict, time.Since(start).Seconds(), m.row); err != nil {
		return err
	}
	if verbose {
		if _, err := out.Write(said); err != nil {
			return err
		}
	}
	if verdict != dead {
		return fmt.Errorf("%s: %s (%s, %s -run '%s')", m.id, verdict, m.row, m.pkg, m.test)
	}
	return nil
}

// What became of a mutation.
const (
	dead         = "killed"
	alive        = "survived"
	stale        = "does not apply: the old text"
	notCompiling = "does not compile"
	noTest       = "ran no test"
)

// try runs the test of a mutation on the mutated file.
func (m *mutation) try(ctx context.Context, dir string) (verdict string, said []byte) {
	original, err := filepath.Abs(filepath.FromSlash(m.file))
	if err != nil {
		return err.Error(), nil
	}
	text, err := os.ReadFile(original)
	if err != nil {
		return err.Error(), nil
	}
	source := strings.ReplaceAll(string(text), "\r\n", "\n")
	if n := strings.Count(source, m.before); n != 1 {
		return fmt.Sprintf("%s occurs %d times", stale, n), nil
	}
	mutated, overlay := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		return err.Error(), nil
	}
	source = strings.Replace(source, m.before, m.after, 1)
	if err := errors.Join(os.WriteFile(mutated, []byte(source), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		return err.Error(), nil
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay", overlay, "-count="+cmp.Or(m.count, "1"), "-timeout=3m", "-v", "-run", m.test, m.pkg)
	cmd.Dir = filepath.FromSlash(m.dir)
	said, err = cmd.CombinedOutput()
	return judge(said, err), said
}

// judge reads the verdict from the output of go test.
func judge(said []byte, err error) string {
	switch {
	case bytes.Contains(said, []byte("[build failed]")), bytes.Contains(said, []byte("[setup failed]")):
		return notCompiling
	case !bytes.Contains(said, []byte("=== RUN ")):
		return noTest
	case err == nil:
		return alive
	}
	return dead
}

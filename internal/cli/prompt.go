package cli

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
)

// maxPrompt bounds what is read from standard input as a prompt, in bytes.
const maxPrompt = 8 << 20

// Flags of mortise run that are for one of its two uses.
const (
	liveFlags   = "thread agent model approve json"
	replayFlags = "output conversation pace lenient record-dir no-record session-dir strict"
)

// promptOf reports whether the argument of mortise run is a prompt, and returns it. An existing file or folder is a recording, and so
// is JSON on standard input, which is returned to be read again.
func promptOf(in io.Reader, arg string) (prompt string, again io.Reader, live bool, err error) {
	if arg == "-" {
		return promptFrom(in)
	}
	if _, err := os.Stat(arg); err == nil || missingFile(arg) {
		return "", in, false, nil
	}
	if strings.TrimSpace(arg) == "" {
		return "", in, false, with(ExitUsage, fmt.Errorf("run: the prompt is empty; write what the agent should do"))
	}
	return arg, in, true, nil
}

func promptFrom(in io.Reader) (prompt string, again io.Reader, live bool, err error) {
	head := make([]byte, 512)
	n, err := io.ReadFull(in, head)
	head = head[:n]
	again = io.MultiReader(bytes.NewReader(head), in)
	if start := bytes.TrimLeft(head, "\ufeff \t\r\n"); len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		return "", again, false, nil
	}
	if err != nil && n == 0 && err != io.EOF { //nolint:errorlint // of ReadFull
		return "", again, false, with(ExitSession, fmt.Errorf("standard input: %w", err))
	}
	text, err := io.ReadAll(io.LimitReader(again, maxPrompt+1))
	switch {
	case err != nil:
		return "", nil, false, with(ExitSession, fmt.Errorf("standard input: %w", err))
	case len(text) > maxPrompt:
		return "", nil, false, with(ExitUsage, fmt.Errorf("standard input: a prompt has at most %d MiB", maxPrompt>>20))
	case len(bytes.TrimSpace(text)) == 0:
		return "", nil, false, with(ExitUsage, fmt.Errorf("standard input: is empty; write a prompt or a recording to it"))
	}
	return string(text), in, true, nil
}

// missingFile reports whether an argument that is no file looks like the path of one: one word with a separator or an extension.
func missingFile(arg string) bool {
	if strings.ContainsAny(arg, " \t\r\n") {
		return false
	}
	return strings.ContainsAny(arg, `/\`) || regexp.MustCompile(`^\.[A-Za-z][A-Za-z0-9]{0,6}$`).MatchString(filepath.Ext(arg))
}

// checkFlags refuses flags of the other use of mortise run.
func checkFlags(flags *pflag.FlagSet, live bool) error {
	other, what := replayFlags, "a recording, and the argument is a prompt"
	if !live {
		other, what = liveFlags, "a prompt, and the argument is a recording"
	}
	var err error
	for name := range strings.FieldsSeq(other) {
		if flags.Changed(name) {
			err = cmp.Or(err, with(ExitUsage, fmt.Errorf("run: --%s is for %s", name, what)))
		}
	}
	return err
}

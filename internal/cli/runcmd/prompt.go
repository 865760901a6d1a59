package runcmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
)

// maxPrompt bounds what is read from standard input as a prompt, in bytes.
const maxPrompt = 8 << 20

// use is what mortise run is used for.
type use string

// Uses of mortise run, as errors name them.
const (
	useUnknown use = ""
	usePrompt  use = "a prompt"
	useReplay  use = "a recording"
)

// useOf is what the flags say. Those of both uses contradict each other.
func useOf(flags *pflag.FlagSet) (use, error) {
	const live, replay = "thread agent model approve json", "output conversation pace lenient record-store no-record strict"
	found, by := useUnknown, ""
	for _, of := range []struct {
		use   use
		names string
	}{{usePrompt, live}, {useReplay, replay}} {
		for name := range strings.FieldsSeq(of.names) {
			switch {
			case !flags.Changed(name):
			case found != useUnknown && found != of.use:
				return "", exit.With(exit.Usage, fmt.Errorf("run: --%s is for %s, and --%s for %s", by, found, name, of.use))
			default:
				found, by = of.use, name
			}
		}
	}
	return found, nil
}

// promptOf returns the prompt if the argument of mortise run is one. An existing file or folder is a recording, as is JSON on
// standard input, which can be read again. What flags say decides about all else.
func promptOf(in io.Reader, arg string, as use) (prompt string, again io.Reader, live bool, err error) {
	if arg == "-" && as == useReplay {
		return "", in, false, nil
	}
	if arg == "-" {
		return promptFrom(in, as)
	}
	_, failed := os.Stat(arg)
	switch {
	case failed == nil && as == usePrompt:
		return "", in, false, exit.With(exit.Usage, fmt.Errorf("run: %s is there: an argument that is a file or folder is a recording; to send its name as a prompt, use standard input: mortise run -", term.Exact(arg)))
	case failed == nil, as == useReplay, missingFile(arg):
		return "", in, false, nil
	case strings.TrimSpace(arg) == "":
		return "", in, false, exit.With(exit.Usage, errors.New("run: the prompt is empty; write what the agent should do"))
	}
	return arg, in, true, nil
}

func promptFrom(in io.Reader, as use) (prompt string, again io.Reader, live bool, err error) {
	head := make([]byte, 512)
	n, err := io.ReadFull(in, head)
	head = head[:n]
	again = io.MultiReader(bytes.NewReader(head), in)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return "", nil, false, exit.With(exit.Session, fmt.Errorf("standard input: %w", err))
	}
	start := bytes.TrimLeft(head, "\ufeff \t\r\n")
	if as != usePrompt && len(start) > 0 && (start[0] == '{' || start[0] == '[') {
		return "", again, false, nil
	}
	text, err := io.ReadAll(io.LimitReader(again, maxPrompt+1))
	switch {
	case err != nil:
		return "", nil, false, exit.With(exit.Session, fmt.Errorf("standard input: %w", err))
	case len(text) > maxPrompt:
		return "", nil, false, exit.With(exit.Usage, fmt.Errorf("standard input: a prompt has at most %d MiB", maxPrompt>>20))
	case len(bytes.TrimSpace(text)) == 0:
		return "", nil, false, exit.With(exit.Usage, errors.New("standard input: is empty; write a prompt or a recording to it"))
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

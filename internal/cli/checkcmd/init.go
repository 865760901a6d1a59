package checkcmd

import (
	_ "embed" // the config
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
)

//go:embed init.yaml
var starter []byte

const initLong = `Write a mortise.yaml to begin with: plugins that block dangerous shell commands and take
credentials out of results, which the program has with it, and the default compaction. The models
of mortise run and mortise serve are there as comments. A file that is there is left alone.

Exit codes: 0 written, 2 wrong command line, 3 the file cannot be written or is there already.`

// NewInit makes mortise init.
func NewInit(s command.Streams) *cobra.Command {
	var file string
	var own bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Write a config to begin with",
		Long:  initLong,
		Example: `  mortise init
  mortise init --user`,
		Args: command.TakesNone,
		RunE: func(*cobra.Command, []string) error {
			name, err := initFile(file, own)
			if err != nil {
				return exit.With(exit.Usage, err)
			}
			return exit.With(exit.Config, writeStarter(s, name))
		},
	}
	f := cmd.Flags()
	f.StringVarP(&file, "config", "c", "", "the file to write (default "+config.FileName+" in the current folder)")
	f.BoolVar(&own, "user", false, "write the config of the user's config folder, which hooks in all folders without one have")
	return cmd
}

// initFile is the file to write.
func initFile(file string, own bool) (string, error) {
	switch {
	case own && file != "":
		return "", errors.New("--user: the file is that of --config; write one of them")
	case file != "":
		return file, nil
	case !own:
		return config.FileName, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("--user: %w", err)
	}
	return filepath.Join(dir, "mortise", config.FileName), nil
}

// writeStarter writes the file unless there is one, and prints what can be done with it.
func writeStarter(s command.Streams, name string) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; it was left as it is", name)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(starter)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	_, err = fmt.Fprintf(s.Out, `wrote %s: plugins guard and redact, compaction by policy ledger

  mortise validate                 check it
  mortise hook install claude      plugins as hooks of Claude Code (or codex, pi, ...)
  mortise proxy -- claude          plugins and compaction between an agent and its provider
  mortise run "..."                an agent of its own; ANTHROPIC_API_KEY or OPENAI_API_KEY is enough
`, name)
	return err
}

package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/term"
)

// TakesOne demands one argument, and names it when it is missing.
func TakesOne(name string, hints ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch len(args) {
		case 1:
			return nil
		case 0:
			return fmt.Errorf("%s%s is missing; write %s %s%s", of(cmd), name, cmd.CommandPath(), name, more(cmd))
		default:
			hint := strings.Join(append([]string{term.Clip(fmt.Sprintf("%q", args), 200)}, hints...), "; ")
			return fmt.Errorf("%stakes one %s, and got %d: %s%s", of(cmd), name, len(args), hint, more(cmd))
		}
	}
}

// TakesSome demands at least one argument.
func TakesSome(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("%s%s is missing; write %s %s...%s", of(cmd), name, cmd.CommandPath(), name, more(cmd))
		}
		return nil
	}
}

// TakesUpToOne refuses a second argument.
func TakesUpToOne(name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return TakesOne(name)(cmd, args)
		}
		return nil
	}
}

// TakesNone refuses arguments. For a command of others they are commands that are not there.
func TakesNone(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if !cmd.HasAvailableSubCommands() {
		return fmt.Errorf("%stakes no argument, and got %.80q%s", of(cmd), args[0], more(cmd))
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("%sthere is no command %.80q%s%s", of(cmd), args[0], config.Meant(args[0], names), more(cmd))
}

// BadFlag words what is wrong with a flag.
func BadFlag(cmd *cobra.Command, err error) error {
	if wrong := (*pflag.InvalidValueError)(nil); errors.As(err, &wrong) {
		return fmt.Errorf("%s--%s %.80q: %w%s", of(cmd), wrong.GetFlag().Name, wrong.GetValue(), wrong.Unwrap(), more(cmd))
	}
	var unknown interface{ GetSpecifiedName() string }
	if !errors.As(err, &unknown) {
		return fmt.Errorf("%s%w%s", of(cmd), err, more(cmd))
	}
	var names []string
	for word := range strings.FieldsSeq(cmd.Flags().FlagUsages()) {
		if name, ok := strings.CutPrefix(word, "--"); ok {
			names = append(names, name)
		}
	}
	meant := strings.Replace(config.Meant(unknown.GetSpecifiedName(), names), "mean ", "mean --", 1)
	return fmt.Errorf("%s%w%s%s", of(cmd), err, meant, more(cmd))
}

// more ends an error with where the command is described.
func more(cmd *cobra.Command) string { return "; " + cmd.CommandPath() + " --help says more" }

// of begins an error with the command; the program itself is named for every error.
func of(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return ""
	}
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") + ": "
}

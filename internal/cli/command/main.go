package command

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
)

// Main runs the command line of a program with these commands and what it links, and returns the exit code. The first interrupt
// ends what runs in an orderly way; the second ends the process. SIGHUP is an
// interrupt when standard error is a terminal, which is gone then; elsewhere it
// waits for mortise run, and other commands ignore it.
func Main(ctx context.Context, args []string, s Streams, links program.Links, commands ...func(Streams) *cobra.Command) exit.Code {
	s.Links = links
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	switch {
	case s.Hangups != nil: // the caller has the signal
	case term.IsTerminal(s.Err):
		ends = append(ends, syscall.SIGHUP)
	default:
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP) // for good: until it has exited, a signal would kill the process
		s.Hangups = hangups
	}
	ctx, stop := signal.NotifyContext(ctx, ends...)
	defer stop()
	go func() {
		<-ctx.Done()
		stop()
	}()
	root := newRoot(s)
	for _, c := range commands {
		root.AddCommand(c(s))
	}
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(s.Err, "mortise:", exit.Text(err))
	}
	return exit.Of(err)
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "mortise",
		Short: "A WebAssembly plugin host for agent extensions",
		Long: `Mortise runs agent conversations through plugins that are WebAssembly modules,
and compacts them in the background by policies that are modules as well.

Exit codes: 0 done, 1 a run failed, 2 wrong command line or nothing of that
name, 3 wrong config, 4 unreadable session, store or record, 5 a module failed to
load, 130 interrupted.`,
		Version:       program.Version(),
		Args:          TakesNone,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(BadFlag)
	root.CompletionOptions.HiddenDefaultCmd = true
	return root
}

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Streams are the standard streams of the process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Main runs the command line and returns the exit code. The first interrupt
// ends what runs in an orderly way; the second ends the process.
func Main(ctx context.Context, args []string, s Streams) ExitCode {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	go func() {
		<-ctx.Done()
		stop()
	}()
	root := newRoot(s) //nolint:contextcheck // cobra hands the context to each command
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(s.Err, "mortise:", err)
	}
	return codeOf(err)
}

func newRoot(s Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "mortise",
		Short: "A WebAssembly plugin host for agent extensions",
		Long: `Mortise runs agent conversations through plugins that are WebAssembly modules,
and compacts them in the background by policies that are modules as well.

Exit codes: 0 done, 1 a run failed, 2 wrong command line, 3 wrong config,
4 unreadable session, 5 a module failed to load, 130 interrupted.`,
		Args:          takesNone,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(s.In)
	root.SetOut(s.Out)
	root.SetErr(s.Err)
	root.SetFlagErrorFunc(badFlag)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newRun(s), newExplain(s), newCompact(s), newVersion(s))
	return root
}

func newVersion(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  takesNone,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.Out, versionText())
			return err
		},
	}
}

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Streams are the standard streams of the process.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	// terminal means that Err is one. If not, hangups holds a SIGHUP that waits.
	terminal bool
	hangups  <-chan os.Signal
	// links are those of Main.
	links Links
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Main runs the command line with what the program links, and returns the exit code. The first interrupt
// ends what runs in an orderly way; the second ends the process. SIGHUP is an
// interrupt when standard error is a terminal, which is gone then; elsewhere it
// waits for mortise run, and other commands ignore it.
func Main(ctx context.Context, args []string, s Streams, links Links) ExitCode {
	s.links = links
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if s.terminal = isTerminal(s.Err); s.terminal {
		ends = append(ends, syscall.SIGHUP)
	} else {
		hangups := make(chan os.Signal, 1)
		signal.Notify(hangups, syscall.SIGHUP) // for good: until it has exited, a signal would kill the process
		s.hangups = hangups
	}
	ctx, stop := signal.NotifyContext(ctx, ends...)
	defer stop()
	go func() {
		<-ctx.Done()
		stop()
	}()
	root := newRoot(s) //nolint:contextcheck // cobra hands the context to each command
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(s.Err, "mortise:", worded(err))
	}
	return codeOf(err)
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
	root.AddCommand(newServe(s), newProxy(s), newACP(s), newHook(s), newMCP(s), newValidate(s), newDoctor(s), newStatus(s), newRun(s), newExplain(s), newCompact(s), newVersion(s))
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

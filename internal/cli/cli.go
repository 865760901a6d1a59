package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/checkcmd"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/cli/compactcmd"
	"github.com/mortise-dev/mortise/internal/cli/explaincmd"
	"github.com/mortise-dev/mortise/internal/cli/hookcmd"
	"github.com/mortise-dev/mortise/internal/cli/proxycmd"
	"github.com/mortise-dev/mortise/internal/cli/runcmd"
	"github.com/mortise-dev/mortise/internal/cli/servecmd"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
)

// Streams are the standard streams of the process: In, Out and Err. Main sets the other fields.
type Streams = command.Streams

// Main is [command.Main] with all commands.
func Main(ctx context.Context, args []string, s Streams, links program.Links) exit.Code {
	return command.Main(ctx, args, s, links, servecmd.New, proxycmd.New, servecmd.NewACP, hookcmd.New, hookcmd.NewMCP, checkcmd.NewInit,
		checkcmd.NewValidate, checkcmd.NewDoctor, servecmd.NewStatus, runcmd.New, explaincmd.New, compactcmd.New, newVersion)
}

func newVersion(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  command.TakesNone,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(s.Out, program.Version())
			return err
		},
	}
}

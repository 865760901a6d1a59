package compactcmd

import (
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
)

// New is the parent of the commands about compaction.
func New(s command.Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Look at compaction, and measure it",
		Args:  command.TakesNone,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCompactEval(s), newCompactShow(s), newCompactUndo(s))
	return cmd
}

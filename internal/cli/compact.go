package cli

import "github.com/spf13/cobra"

// newCompact is the parent of the commands about compaction.
func newCompact(s Streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "compact",
		Short: "Look at compaction, and measure it",
		Args:  takesNone,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCompactEval(s), newCompactShow(s), newCompactUndo(s))
	return cmd
}

package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
)

func (o *hookOptions) tickets() (*hook.Tickets, error) {
	p, err := o.open()
	if err != nil {
		return nil, err
	}
	return hook.NewTickets(filepath.Join(p.dir, daemon.TicketFolder)), nil
}

func newHookPending(s Streams, o *hookOptions) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "pending", Short: "List calls that wait for an approval", Args: takesNone,
		RunE: func(*cobra.Command, []string) error {
			tickets, err := o.tickets()
			if err != nil {
				return err
			}
			all, err := tickets.List()
			if err != nil {
				return with(ExitSession, err)
			}
			open := []*hook.Ticket{}
			for _, t := range all {
				if t.Status == hook.TicketOpen {
					open = append(open, t)
				}
			}
			if asJSON {
				return writeJSON(s.Out, open)
			}
			for _, t := range open {
				fmt.Fprintf(s.Out, "%s  %s  %s, session %s, folder %s\n  plugin %s asks: %s\n  input:\n    %s\n",
					t.ID, t.At.Format("2006-01-02 15:04:05"), oneLine(t.Tool), oneLine(t.Session), oneLine(t.Cwd), oneLine(t.By), oneLine(t.Reason),
					clip(exact(indented(t.Input)), maxQuestion))
			}
			if len(open) == 0 {
				fmt.Fprintln(s.Out, "no call waits")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newHookApprove(s Streams, o *hookOptions) *cobra.Command {
	var reject bool
	var note string
	cmd := &cobra.Command{
		Use: "approve TICKET", Short: "Let a call pass once, or reject it", Args: takesOne("TICKET"),
		Long: `Approve a call that a plugin suspended: the identical call of the same session passes once. Claude Code
asks again when its session is resumed; in other agents the model makes the call again.`,
		RunE: func(_ *cobra.Command, args []string) error {
			tickets, err := o.tickets()
			if err != nil {
				return err
			}
			t, err := tickets.Decide(args[0], !reject, note)
			if errors.Is(err, hook.ErrNoTicket) {
				return notFound(err)
			}
			if err != nil {
				return with(ExitSession, err)
			}
			fmt.Fprintf(s.Out, "%s: %s of %s\n", t.Status, t.ID, oneLine(t.Tool))
			return nil
		},
	}
	cmd.Flags().BoolVar(&reject, "reject", false, "reject the call; the model reads that")
	cmd.Flags().StringVar(&note, "note", "", "words for the model, when the call is rejected")
	return cmd
}

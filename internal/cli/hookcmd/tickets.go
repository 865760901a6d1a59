package hookcmd

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
)

func (o *hookOptions) tickets() (*hook.Tickets, error) {
	p, err := o.open()
	if err != nil {
		return nil, err
	}
	return hook.NewTickets(filepath.Join(p.dir, daemon.TicketFolder)), nil
}

// maxInput bounds what is shown of the input of a call, in characters.
const maxInput = 16 << 10

func newHookPending(s command.Streams, o *hookOptions) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "pending", Short: "List calls that wait for an approval", Args: command.TakesNone,
		RunE: func(*cobra.Command, []string) error {
			tickets, err := o.tickets()
			if err != nil {
				return err
			}
			all, err := tickets.List()
			if err != nil {
				return exit.With(exit.Session, err)
			}
			open := []*hook.Ticket{}
			for _, t := range all {
				if t.Status == hook.TicketOpen {
					open = append(open, t)
				}
			}
			if asJSON {
				return term.WriteJSON(s.Out, open)
			}
			for _, t := range open {
				fmt.Fprintf(s.Out, "%s  %s  %s, session %s, folder %s\n  plugin %s asks: %s\n  input:\n    %s\n",
					t.ID, t.At.Format("2006-01-02 15:04:05"), term.OneLine(t.Tool), term.OneLine(t.Session), term.OneLine(t.Cwd), term.OneLine(t.By), term.OneLine(t.Reason),
					term.Clip(term.Exact(term.Indented(t.Input)), maxInput))
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

func newHookApprove(s command.Streams, o *hookOptions) *cobra.Command {
	var reject bool
	var note string
	cmd := &cobra.Command{
		Use: "approve TICKET", Short: "Let a call pass once, or reject it", Args: command.TakesOne("TICKET"),
		Long: `Approve a call that a plugin suspended: the identical call of the same session passes once. Claude Code
asks again when its session is resumed; in other agents the model makes the call again.`,
		RunE: func(_ *cobra.Command, args []string) error {
			tickets, err := o.tickets()
			if err != nil {
				return err
			}
			t, err := tickets.Decide(args[0], !reject, note)
			if errors.Is(err, hook.ErrNoTicket) {
				return exit.NotFound(err)
			}
			if err != nil {
				return exit.With(exit.Session, err)
			}
			fmt.Fprintf(s.Out, "%s: %s of %s\n", t.Status, t.ID, term.OneLine(t.Tool))
			return nil
		},
	}
	cmd.Flags().BoolVar(&reject, "reject", false, "reject the call; the model reads that")
	cmd.Flags().StringVar(&note, "note", "", "words for the model, when the call is rejected")
	return cmd
}

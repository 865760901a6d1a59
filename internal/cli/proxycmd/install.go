package proxycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/launch"
)

func newProxyInstall(s command.Streams, o *proxyOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install AGENT",
		Short: "Write the proxy's address into an agent's settings: claude, codex, pi or opencode",
		Args:  command.TakesOne("AGENT"),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := o.read()
			if err != nil {
				return exit.With(exit.Config, err)
			}
			place, err := launch.Here()
			if err != nil {
				return exit.With(exit.Run, err)
			}
			path, err := launch.Install(place, args[0], "http://"+cfg.Proxy.Listen)
			if err != nil {
				return exit.With(exit.Config, err)
			}
			fmt.Fprintf(s.Out, "wrote %s; %s now needs mortise proxy to run\nmortise proxy uninstall %s restores it byte for byte\n", path, args[0], args[0])
			return nil
		},
	}
	command.ConfigFlag(cmd.Flags(), &o.config, ", if there is one")
	cmd.Flags().StringVar(&o.listen, "listen", "", "HOST:PORT of the proxy (overrides proxy.listen)")
	return cmd
}

func newProxyUninstall(s command.Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall AGENT",
		Short: "Restore an agent's settings",
		Args:  command.TakesOne("AGENT"),
		RunE: func(_ *cobra.Command, args []string) error {
			place, err := launch.Here()
			if err != nil {
				return exit.With(exit.Run, err)
			}
			path, err := launch.Uninstall(place, args[0])
			if err != nil {
				return exit.With(exit.Run, err)
			}
			fmt.Fprintf(s.Out, "restored %s\n", path)
			return nil
		},
	}
}

func newProxyStatus(s command.Streams, o *proxyOptions) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the ledger of a running proxy",
		Args:  command.TakesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.read()
			if err != nil {
				return exit.With(exit.Config, err)
			}
			raw, err := fetch(cmd.Context(), "http://"+cfg.Proxy.Admin+"/v1/proxy")
			if err != nil {
				return exit.With(exit.Run, fmt.Errorf("%w; is mortise proxy running?", err))
			}
			if asJSON {
				_, err = s.Out.Write(raw)
				return err
			}
			var r proxy.Report
			if err := json.Unmarshal(raw, &r); err != nil {
				return exit.With(exit.Run, err)
			}
			printLedger(s.Out, &r)
			for _, l := range r.Lanes {
				fmt.Fprintf(s.Out, "  %s %s: %d calls, %d turns, %d compactions, %.0f units\n", l.ID, l.Protocol, l.Calls, l.Runs, l.Swaps, l.Money.Paid.Units)
			}
			return nil
		},
	}
	command.ConfigFlag(cmd.Flags(), &o.config, ", if there is one")
	cmd.Flags().StringVar(&o.admin, "admin", "", "HOST:PORT of metrics and ledger (overrides proxy.admin)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func fetch(ctx context.Context, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 64<<20))
}

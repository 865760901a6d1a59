package proxycmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
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
			r, err := launch.Install(place, args[0], "http://"+cfg.Proxy.Listen)
			if err != nil {
				return exit.With(exit.Config, err)
			}
			fmt.Fprintf(s.Out, "wrote %s; %s now needs mortise proxy to run\n", r.Path, args[0])
			printBackup(s.Out, r)
			fmt.Fprintf(s.Out, "mortise proxy uninstall %s restores it byte for byte\n", args[0])
			if args[0] == launch.Claude {
				for _, d := range place.Detours(place.Getenv, launch.Installed(place, launch.Claude)) {
					fmt.Fprintf(s.Err, "warning: %s\n", detour(d))
				}
			}
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
		Short: "Take the proxy's address out of an agent's settings",
		Args:  command.TakesOne("AGENT"),
		RunE: func(_ *cobra.Command, args []string) error {
			place, err := launch.Here()
			if err != nil {
				return exit.With(exit.Run, err)
			}
			r, err := launch.Uninstall(place, args[0])
			if err != nil {
				return exit.With(exit.Run, err)
			}
			printUninstalled(s.Out, r)
			return nil
		},
	}
}

func printUninstalled(w io.Writer, r *launch.Result) {
	switch {
	case r.Gone:
		fmt.Fprintf(w, "%s is not there any more, so nothing is taken out of it\n", r.Path)
	case r.Exact:
		fmt.Fprintf(w, "restored %s\n", r.Path)
	default:
		fmt.Fprintf(w, "%s was changed since: what mortise proxy install wrote is taken out, the rest is left as it is\n", r.Path)
	}
	printBackup(w, r)
	for _, l := range r.Left {
		fmt.Fprintf(w, "  %s is left as it is now: %s; before the installation: %s\n", l.Key, orNone(l.Now), orNone(l.Before))
	}
}

func printBackup(w io.Writer, r *launch.Result) {
	if r.Backup != "" {
		fmt.Fprintf(w, "  backup: %s\n", r.Backup)
	}
}

func orNone(value string) string { return config.Shown(cmp.Or(value, "nothing")) }

// detour is a warning of a setting that leads around the proxy.
func detour(d launch.Detour) string {
	return fmt.Sprintf("%s in %s is %s: requests then go around the proxy", d.Key, cmp.Or(d.File, "the environment"), config.Shown(d.Value))
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

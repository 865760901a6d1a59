package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/launch"
)

func newProxyInstall(s Streams, o *proxyOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install AGENT",
		Short: "Write the proxy's address into an agent's settings: claude, codex, pi or opencode",
		Args:  takesOne("AGENT"),
		RunE: func(_ *cobra.Command, args []string) error {
			cfg, err := o.read()
			if err != nil {
				return with(ExitConfig, err)
			}
			place, err := launch.Here()
			if err != nil {
				return with(ExitRun, err)
			}
			path, err := launch.Install(place, args[0], "http://"+cfg.Proxy.Listen)
			if err != nil {
				return with(ExitConfig, err)
			}
			fmt.Fprintf(s.Out, "wrote %s; %s now needs mortise proxy to run\nmortise proxy uninstall %s restores it byte for byte\n", path, args[0], args[0])
			return nil
		},
	}
	configFlag(cmd.Flags(), &o.config, ", if there is one")
	cmd.Flags().StringVar(&o.listen, "listen", "", "HOST:PORT of the proxy (overrides proxy.listen)")
	return cmd
}

func newProxyUninstall(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "uninstall AGENT",
		Short: "Restore an agent's settings",
		Args:  takesOne("AGENT"),
		RunE: func(_ *cobra.Command, args []string) error {
			place, err := launch.Here()
			if err != nil {
				return with(ExitRun, err)
			}
			path, err := launch.Uninstall(place, args[0])
			if err != nil {
				return with(ExitRun, err)
			}
			fmt.Fprintf(s.Out, "restored %s\n", path)
			return nil
		},
	}
}

func newProxyStatus(s Streams, o *proxyOptions) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Print the ledger of a running proxy",
		Args:  takesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.read()
			if err != nil {
				return with(ExitConfig, err)
			}
			raw, err := fetch(cmd.Context(), "http://"+cfg.Proxy.Admin+"/v1/proxy")
			if err != nil {
				return with(ExitRun, fmt.Errorf("%w; is mortise proxy running?", err))
			}
			if asJSON {
				_, err = s.Out.Write(raw)
				return err
			}
			var r proxy.Report
			if err := json.Unmarshal(raw, &r); err != nil {
				return with(ExitRun, err)
			}
			printLedger(s.Out, &r)
			for _, l := range r.Lanes {
				fmt.Fprintf(s.Out, "  %s %s: %d calls, %d turns, %d compactions, %.0f units\n", l.ID, l.Protocol, l.Calls, l.Runs, l.Swaps, l.Money.Paid.Units)
			}
			return nil
		},
	}
	configFlag(cmd.Flags(), &o.config, ", if there is one")
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

func newProxyDoctor(s Streams) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what a proxy changes for the agents of this machine",
		Args:  takesNone,
		RunE: func(*cobra.Command, []string) error {
			for _, f := range proxyFindings(os.Getenv) {
				fmt.Fprintf(s.Out, "%-5s %s: %s\n", f.State, f.Check, f.Detail)
				if f.Hint != "" {
					fmt.Fprintf(s.Out, "      %s\n", f.Hint)
				}
			}
			return nil
		},
	}
}

// proxyFindings are about the environment of agents.
func proxyFindings(getenv func(string) string) (out []finding) {
	add := func(check string, f finding) {
		f.Check = check
		out = append(out, f)
	}
	if getenv("_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL") != "" {
		add("claude", warned("unset _CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL, or set proxy.act_on_signed",
			"Claude Code puts an integrity value (cch=) over each request, so that the proxy only observes"))
	}
	if getenv("ENABLE_TOOL_SEARCH") == "" {
		add("claude", warned("set ENABLE_TOOL_SEARCH=true, as mortise proxy -- claude and install do",
			"with a base URL of its own Claude Code sends all tools in each first request (24 in place of 9)"))
	}
	if getenv("ANTHROPIC_API_KEY") == "" && getenv("ANTHROPIC_AUTH_TOKEN") == "" {
		add("claude", warned("use an API key, or set proxy.act_on_signed if the vendor's terms allow it",
			"requests with the OAuth credential of a subscription are only observed"))
	}
	add("claude", warned("compare /context with and without the proxy; ANTHROPIC_MODEL=...[1m] asks for the long window",
		"a custom base URL may cost the 1M window and remote control of Claude Code"))
	place, err := launch.Here()
	if err != nil {
		return append(out, failed("set HOME", err))
	}
	for _, agent := range launch.Agents() {
		if route := launch.Route(place, agent); route != "" {
			add(agent, fine("installed; its former base URL is the upstream: %s", shown(route)))
		}
	}
	if strings.Contains(getenv("HTTPS_PROXY")+getenv("https_proxy"), "@") {
		add("network", warned("", "requests to providers go through the HTTP proxy of the environment"))
	}
	return out
}

package servecmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/serve"
)

const statusLong = `Ask a running server what it does: runs, dead letters, plugins and policies, MCP servers.

The server is that of --url, by default the operator's API at MORTISE_ADMIN or on
127.0.0.1:8421. The token is in the environment variable that --token-env names.

Exit codes: 0 it answered, 1 it did not or refused, 2 wrong command line.`

type statusOptions struct {
	url, tokenEnv string
	asJSON        bool
	timeout       time.Duration
}

// NewStatus makes mortise status.
func NewStatus(s command.Streams) *cobra.Command {
	var o statusOptions
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Ask a running server what it does",
		Long:    statusLong,
		Example: "  mortise status --url http://127.0.0.1:8421 --token-env OPS_TOKEN",
		Args:    command.TakesNone,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runStatus(cmd.Context(), s.Out, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.url, "url", "", "URL of the operator's API (default http://127.0.0.1:8421)")
	f.StringVar(&o.tokenEnv, "token-env", "", "environment variable that has a token with the scope admin")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long to wait for the answer")
	return cmd
}

func runStatus(ctx context.Context, out io.Writer, o statusOptions) error {
	base := cmp.Or(o.url, "http://"+cmp.Or(os.Getenv("MORTISE_ADMIN"), config.DefaultAdmin))
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return exit.With(exit.Usage, fmt.Errorf("--url %.100q: write it as http://127.0.0.1:8421", base))
	}
	token := os.Getenv(o.tokenEnv)
	if o.tokenEnv != "" && token == "" {
		return exit.With(exit.Usage, fmt.Errorf("--token-env: the environment variable %.80q is not set", o.tokenEnv))
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	body, err := getStatus(ctx, strings.TrimSuffix(base, "/")+"/v1/status", token)
	if err != nil {
		return exit.With(exit.Run, fmt.Errorf("%s: %w", u.Redacted(), err))
	}
	var status serve.Status
	if err := json.Unmarshal(body, &status); err != nil || status.StartedAt.IsZero() {
		return exit.With(exit.Run, fmt.Errorf("%s: it does not answer as mortise serve does; --url names the operator's API", u.Redacted()))
	}
	if o.asJSON {
		return term.WriteJSON(out, status)
	}
	return printStatus(out, u.Redacted(), &status)
}

// maxStatus bounds an answer, in bytes.
const maxStatus = 16 << 20

func getStatus(ctx context.Context, address, token string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	resp, err := client.Do(req)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err
		}
		return nil, fmt.Errorf("no answer: %w; mortise serve prints the address of its operator's API when it starts", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxStatus))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusUnauthorized && token == "":
		return nil, errors.New("the server wants a token; name the variable that has it with --token-env")
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, errors.New("the server does not know the token; use one of serve.tokens with the scope admin")
	case resp.StatusCode == http.StatusForbidden:
		return nil, fmt.Errorf("the server refuses the request: %s", problemIn(body))
	case resp.StatusCode == http.StatusNotFound:
		return nil, errors.New("it has no such route; --url names the operator's API, which is on another port than the API")
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("status %d: %s", resp.StatusCode, problemIn(body))
	}
	return body, nil
}

// problemIn is what a problem of the server says.
func problemIn(body []byte) string {
	var p serve.Problem
	if err := json.Unmarshal(body, &p); err != nil || p.Detail == "" {
		return term.Whole(term.Clip(string(body), 200))
	}
	return term.Whole(p.Detail + term.After("; ", p.Hint))
}

func printStatus(out io.Writer, address string, s *serve.Status) error {
	state := "serving"
	if s.Draining {
		state = "draining"
	}
	t := term.NewTable(out)
	t.Row("%s\t%s, %s, up %s, store %s", address, state, s.Version, time.Duration(s.Uptime)*time.Second, cmp.Or(s.Store, "unknown"))
	t.Row("runs\t%d executing here, %d queued, %d dead letters", s.Executing, s.Queued, s.DeadLetters)
	t.Row("now\t%s, %s under way", term.Counted(s.Streams, "event stream"), term.Counted(s.Compactions, "compaction"))
	for _, a := range s.Agents {
		t.Row("agent %s\t%s", term.Plain(a.Name, 40), term.Plain(a.Model, 60))
	}
	for i := range s.Modules {
		m := &s.Modules[i]
		t.Row("%s %s\t%s %s, %s, %d failed, %s, %s%s", m.Role, term.Plain(m.Name, 40), m.State, term.Clip(m.SHA256, 13), term.Counted(int(m.Calls), "call"), m.Failures,
			term.Counted(int(m.Swaps), "swap"), term.Counted(int(m.RollBacks), "rollback"), term.After(": ", term.Plain(m.LastError, 200)))
	}
	for _, m := range s.Servers {
		t.Row("mcp %s\t%s, %s, %s%s", term.Plain(m.Name, 40), m.State, term.Counted(m.Tools, "tool"), term.Counted(m.Restarts, "restart"), term.After(": ", term.Plain(m.LastError, 200)))
	}
	return t.End()
}

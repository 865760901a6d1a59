package proxycmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/check"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/proxy/launch"
)

func newProxyDoctor(s command.Streams) *cobra.Command {
	var live bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what a proxy changes for the agents of this machine",
		Args:  command.TakesNone,
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := proxyFindings(os.Getenv)
			if live {
				found = append(found, compareClaude(cmd.Context())...)
			}
			bad := false
			for _, f := range found {
				bad = bad || f.State == check.Fail
				fmt.Fprintf(s.Out, "%-5s %s: %s\n", f.State, f.Check, f.Detail)
				if f.Hint != "" {
					fmt.Fprintf(s.Out, "      %s\n", f.Hint)
				}
			}
			if bad {
				return exit.With(exit.Run, errors.New("the agent could not be compared"))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "run the installed Claude Code against a server of our own, as behind the proxy and as without it, and compare its requests")
	return cmd
}

// firstParty makes Claude Code take any base URL for the vendor's.
const firstParty = "_CLAUDE_CODE_ASSUME_FIRST_PARTY_BASE_URL"

// claudeRequest is what Claude Code asked for in its first request of a conversation.
type claudeRequest struct {
	Model string
	Betas []string
	Tools int
}

// compareClaude runs Claude Code as behind the proxy and as without it. No request leaves this machine.
func compareClaude(ctx context.Context) []check.Finding {
	const name = "claude --live"
	with, err := askClaude(ctx, false)
	var without *claudeRequest
	if err == nil {
		without, err = askClaude(ctx, true)
	}
	if err != nil {
		f := check.Failed("install Claude Code, or leave --live out", err)
		f.Check = name
		return []check.Finding{f}
	}
	var missing []string
	for _, b := range without.Betas {
		if !slices.Contains(with.Betas, b) {
			missing = append(missing, b)
		}
	}
	judge := func(same bool, hint, what string, a, b any) check.Finding {
		f := check.Fine("%s: %v, as without the proxy", what, a)
		if !same {
			f = check.Warned(hint, "%s: %v, without the proxy %v", what, a, b)
		}
		f.Check = name
		return f
	}
	return []check.Finding{
		judge(with.Model == without.Model && with.long() == without.long(), "name the model with [1m], as in ANTHROPIC_MODEL=claude-sonnet-4-5[1m]",
			"model and window", with.window(), without.window()),
		judge(len(missing) == 0, "what these switch on is off behind a base URL of one's own; missing: "+strings.Join(missing, ", "),
			"betas", len(with.Betas), len(without.Betas)),
		judge(with.Tools == without.Tools, "set ENABLE_TOOL_SEARCH=true, as mortise proxy -- claude does", "tools in the first request", with.Tools, without.Tools),
	}
}

// long reports whether the window of a million tokens is asked for.
func (c *claudeRequest) long() bool {
	return slices.ContainsFunc(c.Betas, func(b string) bool { return strings.HasPrefix(b, "context-1m-") })
}

func (c *claudeRequest) window() string {
	if c.long() {
		return c.Model + " with 1M tokens"
	}
	return c.Model
}

// liveTime bounds one run of an agent.
const liveTime = time.Minute

// askClaude runs Claude Code, in a configuration of its own, and returns its request.
func askClaude(ctx context.Context, direct bool) (*claudeRequest, error) {
	path, err := exec.LookPath("claude")
	if err != nil {
		return nil, errors.New("claude is not in PATH")
	}
	dir, err := os.MkdirTemp("", "mortise-doctor")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	seen := &claudeListener{}
	up := &http.Server{Handler: seen, ReadHeaderTimeout: liveTime}
	go func() { _ = up.Serve(listener) }()
	defer up.Close()
	address := "http://" + listener.Addr().String()
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "ANTHROPIC_BASE_URL=") || strings.HasPrefix(v, "ANTHROPIC_AUTH_TOKEN=") || strings.HasPrefix(v, firstParty+"=")
	})
	env = append(env, "HOME="+dir, "CLAUDE_CONFIG_DIR="+dir, "ANTHROPIC_API_KEY=sk-ant-doctor", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "IS_SANDBOX=1")
	if direct {
		env = append(env, "ANTHROPIC_BASE_URL="+address, firstParty+"=1")
	} else {
		place := launch.Place{Home: dir, Getenv: func(string) string { return "" }, State: dir}
		c, err := launch.Of(place, []string{"claude"}, env, address)
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(c.Dir)
		env = c.Env
	}
	ctx, cancel := context.WithTimeout(ctx, liveTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "-p", "hi", "--output-format", "json") //nolint:gosec // the agent of the user
	cmd.Dir, cmd.Env, cmd.WaitDelay = dir, env, time.Second
	out, err := cmd.CombinedOutput()
	if r := seen.request(); r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("claude sent no request with tools (%w): %s", errors.Join(err, ctx.Err()), term.Clip(string(out), 300))
}

// claudeListener refuses each request, and keeps the first with tools.
type claudeListener struct {
	mu    sync.Mutex
	first *claudeRequest
}

func (l *claudeListener) request() *claudeRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first
}

// ServeHTTP implements http.Handler.
func (l *claudeListener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string
		Tools []json.RawMessage
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 64<<20)).Decode(&body); err == nil && len(body.Tools) > 0 && strings.HasSuffix(r.URL.Path, "/v1/messages") {
		l.mu.Lock()
		if l.first == nil {
			l.first = &claudeRequest{Model: body.Model, Tools: len(body.Tools)}
			for b := range strings.SplitSeq(strings.Join(r.Header.Values("Anthropic-Beta"), ","), ",") {
				if b = strings.TrimSpace(b); b != "" {
					l.first.Betas = append(l.first.Betas, b)
				}
			}
		}
		l.mu.Unlock()
	}
	http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"mortise proxy doctor has seen enough"}}`, http.StatusBadRequest)
}

// proxyFindings are about the environment of agents.
func proxyFindings(getenv func(string) string) (out []check.Finding) {
	add := func(name string, f check.Finding) {
		f.Check = name
		out = append(out, f)
	}
	if getenv(firstParty) != "" {
		add("claude", check.Warned("unset "+firstParty+", or set proxy.act_on_signed",
			"Claude Code puts an integrity value (cch=) over each request, so that the proxy only observes"))
	}
	if getenv("ENABLE_TOOL_SEARCH") == "" {
		add("claude", check.Warned("set ENABLE_TOOL_SEARCH=true, as mortise proxy -- claude and install do",
			"with a base URL of its own Claude Code sends all tools in each first request (24 in place of 9)"))
	}
	if getenv("ANTHROPIC_API_KEY") == "" && getenv("ANTHROPIC_AUTH_TOKEN") == "" {
		add("claude", check.Warned("use an API key, or set proxy.act_on_signed if the vendor's terms allow it",
			"requests with the OAuth credential of a subscription are only observed"))
	}
	add("claude", check.Warned("mortise proxy doctor --live compares them; ANTHROPIC_MODEL=...[1m] asks for the long window",
		"a custom base URL may cost the 1M window and remote control of Claude Code"))
	place, err := launch.Here()
	if err != nil {
		return append(out, check.Failed("set HOME", err))
	}
	for _, d := range place.Detours(getenv, launch.Installed(place, launch.Claude)) {
		add("claude", check.Warned("take it out; mortise proxy -- claude overrides the base URL of a project", "%s", detour(d)))
	}
	for _, agent := range launch.Agents() {
		installed := launch.Installed(place, agent)
		if route := launch.Route(place, agent); route != "" {
			add(agent, check.Fine("installed; its former base URL is the upstream: %s", config.Shown(route)))
		}
		for _, b := range place.BaseURLs(agent) {
			if answers(b.Value) {
				continue
			}
			hint := "start that server, or put the right address in place of it"
			if installed != "" && strings.HasPrefix(b.Value, installed) {
				hint = "start mortise proxy, or run: mortise proxy uninstall " + agent
			}
			add(agent, check.Warned(hint, "%s in %s is %s, where nothing listens", b.Key, b.File, config.Shown(b.Value)))
		}
	}
	if strings.Contains(getenv("HTTPS_PROXY")+getenv("https_proxy"), "@") {
		add("network", check.Warned("", "requests to providers go through the HTTP proxy of the environment"))
	}
	return out
}

// answers reports whether a URL leads to another machine, or to a port that is open.
func answers(address string) bool {
	u, err := url.Parse(address)
	if err != nil || u.Port() == "" {
		return true
	}
	if ip := net.ParseIP(u.Hostname()); u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return true
	}
	c, err := net.DialTimeout("tcp", u.Host, time.Second) //nolint:noctx // a second at most
	if err == nil {
		_ = c.Close()
	}
	return err == nil
}

package checkcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/agent/mcp"
	"github.com/mortise-dev/mortise/internal/cli/check"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
)

// checkModels asks each provider for its list of models.
func checkModels(c *program.Setup) []check.Probe {
	var out []check.Probe
	for _, name := range slices.Sorted(maps.Keys(c.Clients)) {
		m := c.Clients[name]
		out = append(out, check.Probe{Name: "models." + name, Do: func(ctx context.Context) check.Finding { return reachable(ctx, m) }})
	}
	return out
}

// maxModels bounds a list of models, in bytes.
const maxModels = 4 << 20

// reachable gets the list of models, which is free.
func reachable(ctx context.Context, m program.OpenModel) check.Finding {
	base := strings.TrimSuffix(cmp.Or(m.Cfg.BaseURL, "https://api.openai.com/v1"), "/") + "/models"
	if m.Cfg.Provider == config.ProviderAnthropic {
		base = strings.TrimSuffix(cmp.Or(m.Cfg.BaseURL, "https://api.anthropic.com"), "/") + "/v1/models?limit=1000"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base, http.NoBody)
	if err != nil {
		return check.Failed("see base_url", errors.New("base_url is no URL"))
	}
	switch {
	case m.Key == "":
	case m.Cfg.Provider == config.ProviderAnthropic:
		req.Header.Set("X-Api-Key", m.Key)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	default:
		req.Header.Set("Authorization", "Bearer "+m.Key)
	}
	client := &http.Client{
		Transport:     &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the key goes nowhere else
	}
	resp, err := client.Do(req)
	if err != nil {
		if inner := (*url.Error)(nil); errors.As(err, &inner) {
			err = inner.Err // without the URL
		}
		return check.Failed("see base_url, the network and its proxy", fmt.Errorf("%s does not answer: %w", req.URL.Host, err))
	}
	defer resp.Body.Close()
	return listed(m, resp)
}

// listed judges an answer to a request for the list of models.
func listed(m program.OpenModel, resp *http.Response) check.Finding {
	at := resp.Request.URL.Host
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return check.Failed("see key: the variable or the file that it names", fmt.Errorf("%s refuses the key (status %d)", at, code))
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return check.Warned("it may be a compatible server without one: run once to see", "%s answers, and has no list of models", at)
	case code != http.StatusOK:
		return check.Warned("", "%s answers with status %d", at, code)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxModels)).Decode(&list); err != nil {
		return check.Warned("see base_url", "%s answers, and not as a provider does", at)
	}
	for _, one := range list.Data {
		if one.ID == m.Cfg.Name {
			return check.Fine("%s takes the key and has %s", at, m.Cfg.Name)
		}
	}
	return check.Warned("an alias need not be in the list; if it is none, correct name", "%s takes the key, and %.80q is not among its %d models", at, m.Cfg.Name, len(list.Data))
}

// checkServers starts each MCP server and ends it.
func checkServers(c *program.Setup) []check.Probe {
	wanted, err := c.Mcp()
	if err != nil {
		return nil // resolve has said so
	}
	var out []check.Probe
	for _, s := range wanted.Servers {
		required := s.Required
		s.Required = true
		out = append(out, check.Probe{Name: "mcp." + s.Name, Do: func(ctx context.Context) check.Finding {
			all, err := mcp.Open(ctx, mcp.Config{Servers: []mcp.ServerConfig{s}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil && !required {
				return check.Warned("mortise serve starts without it and tries again", "%s", exit.Text(err))
			}
			if err != nil {
				return check.Failed("run its command by hand, or see its url and headers", err)
			}
			n := len(all.Tools())
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.CloseTimeout)
			defer cancel()
			if err := all.Close(closing); err != nil {
				return check.Warned("", "it lists %s and does not end: %v", term.Counted(n, "tool"), err)
			}
			if n == 0 {
				return check.Warned("see tools and exclude", "it offers no tool")
			}
			return check.Fine("%s", term.Counted(n, "tool"))
		}})
	}
	return out
}

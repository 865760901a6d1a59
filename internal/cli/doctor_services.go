package cli

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
)

// checkModels asks each provider for its list of models.
func (c *Config) checkModels() []check {
	var out []check
	for _, name := range slices.Sorted(maps.Keys(c.models)) {
		m := c.models[name]
		out = append(out, check{"models." + name, m.reachable})
	}
	return out
}

// maxModels bounds a list of models, in bytes.
const maxModels = 4 << 20

// reachable gets the list of models, which is free.
func (m *openModel) reachable(ctx context.Context) finding {
	base := strings.TrimSuffix(cmp.Or(m.cfg.BaseURL, "https://api.openai.com/v1"), "/") + "/models"
	if m.cfg.Provider == providerAnthropic {
		base = strings.TrimSuffix(cmp.Or(m.cfg.BaseURL, "https://api.anthropic.com"), "/") + "/v1/models?limit=1000"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base, http.NoBody)
	if err != nil {
		return failed("see base_url", errors.New("base_url is no URL"))
	}
	switch {
	case m.key == "":
	case m.cfg.Provider == providerAnthropic:
		req.Header.Set("X-Api-Key", m.key)
		req.Header.Set("Anthropic-Version", "2023-06-01")
	default:
		req.Header.Set("Authorization", "Bearer "+m.key)
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
		return failed("see base_url, the network and its proxy", fmt.Errorf("%s does not answer: %w", req.URL.Host, err))
	}
	defer resp.Body.Close()
	return m.listed(resp)
}

// listed judges an answer to a request for the list of models.
func (m *openModel) listed(resp *http.Response) finding {
	at := resp.Request.URL.Host
	switch code := resp.StatusCode; {
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return failed("see key: the variable or the file that it names", fmt.Errorf("%s refuses the key (status %d)", at, code))
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return warned("it may be a compatible server without one: run once to see", "%s answers, and has no list of models", at)
	case code != http.StatusOK:
		return warned("", "%s answers with status %d", at, code)
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxModels)).Decode(&list); err != nil {
		return warned("see base_url", "%s answers, and not as a provider does", at)
	}
	for _, one := range list.Data {
		if one.ID == m.cfg.Name {
			return fine("%s takes the key and has %s", at, m.cfg.Name)
		}
	}
	return warned("an alias need not be in the list; if it is none, correct name", "%s takes the key, and %.80q is not among its %d models", at, m.cfg.Name, len(list.Data))
}

// checkServers starts each MCP server and ends it.
func (c *Config) checkServers() []check {
	wanted, err := c.mcp()
	if err != nil {
		return nil // resolve has said so
	}
	var out []check
	for _, s := range wanted.Servers {
		required := s.Required
		s.Required = true
		out = append(out, check{"mcp." + s.Name, func(ctx context.Context) finding {
			all, err := mcp.Open(ctx, mcp.Config{Servers: []mcp.ServerConfig{s}, Logger: slog.New(slog.DiscardHandler)})
			if err != nil && !required {
				return warned("mortise serve starts without it and tries again", "%s", worded(err))
			}
			if err != nil {
				return failed("run its command by hand, or see its url and headers", err)
			}
			n := len(all.Tools())
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
			defer cancel()
			if err := all.Close(closing); err != nil {
				return warned("", "it lists %s and does not end: %v", counted(n, "tool"), err)
			}
			if n == 0 {
				return warned("see tools and exclude", "it offers no tool")
			}
			return fine("%s", counted(n, "tool"))
		}})
	}
	return out
}

package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// Addresses of the vendors.
const (
	AnthropicURL = "https://api.anthropic.com"
	OpenAIURL    = "https://api.openai.com"
	ChatGPTURL   = "https://chatgpt.com/backend-api/codex"
)

// Upstream is a provider. An empty Key passes the client's own credential.
type Upstream struct {
	URL string
	Key string
}

// Tools are those that plugins offer. plugins.Tools is one.
type Tools interface {
	Tools() []abi.Tool
	CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error)
}

// Records are decision records of runs. thread.Recorder is one.
type Records interface {
	Start(s thread.RunStart) error
	Add(run string, d thread.Decision) error
	End(run string, e thread.RunEnd) error
}

// Config makes a [Server]. Zero fields mean the default.
type Config struct {
	// Anthropic, OpenAI and ChatGPT are where requests go. ChatGPT gets those of Codex with a ChatGPT login.
	Anthropic, OpenAI, ChatGPT Upstream
	// Routes are further upstreams: /to/NAME/... goes to the URL of a name.
	Routes func(name string) string
	// Runtime has the plugins, nil for none, and Tools those of their tools that models are offered.
	Runtime *phases.Runtime
	Tools   Tools
	// Compaction is off when nil.
	Compaction *Compaction
	// Store keeps threads; nil keeps what a session needs in memory and no text. Keep is how long a thread is kept that
	// is not used, 30 days when 0.
	Store store.Store
	Keep  time.Duration
	// Listed lists threads elsewhere too, as in a mailbox; nil does not.
	Listed lane.Listing
	// Records gets the runs of the threads, and what is decided about their compactions, for explain; nil keeps none. What plugins decide is
	// recorded by the Runtime.
	Records Records
	// ClientTokens is how many tokens of models a [ClientKey] may ask for within an hour with the API key of one client, to compact its
	// conversations. 0 permits none. A login is never used, and a key that got a 429 not again.
	ClientTokens int64
	// Act lets plugins and compactions act on requests that carry an integrity value of the client or an OAuth
	// credential. Else these are only observed.
	Act bool
	// Ungated are patterns of paths, as of [path.Match], that pass although a plugin fails closed and cannot see them.
	Ungated []string
	// Token, if any, is what clients must send in the header X-Mortise-Token. Without one only clients on this machine
	// are served.
	Token string
	// Price returns the price of a token of fresh input in USD, 0 where it is not known.
	Price     func(model string) float64
	Transport http.RoundTripper
	Logger    *slog.Logger
	Now       func() time.Time
}

// Compaction configures how conversations are compacted.
type Compaction struct {
	// Policy has the threshold, a quarter of the window when 0, and what is kept. Its window is that of models whose own is not known, 200,000
	// when 0.
	Policy     compaction.Policy
	Summarizer compaction.Summarizer
	// Admitter decides whether a compaction may start; compaction.Rules when nil.
	Admitter compaction.Admitter
	// Concurrent is how many run at a time, 2 when 0; Timeout is that of one request to the Summarizer, 2 min when 0.
	Concurrent int
	Timeout    time.Duration
	// Expected is how many calls a session is taken to have left, 12 when 0.
	Expected int
	// Every is how many calls there are between two swaps at least, 10 when 0.
	Every int
}

// keepDefault is how long a thread is kept that is not used.
const keepDefault = 30 * 24 * time.Hour

// acts reports whether anything may change a request: a store has what was changed by earlier processes.
func (c *Config) acts() bool {
	return c.Runtime != nil || c.Tools != nil || c.Compaction != nil || c.Store != nil
}

func (c *Config) withDefaults() error {
	c.Anthropic.URL = cmp.Or(c.Anthropic.URL, AnthropicURL)
	c.OpenAI.URL = cmp.Or(c.OpenAI.URL, OpenAIURL)
	c.ChatGPT.URL = cmp.Or(c.ChatGPT.URL, ChatGPTURL)
	c.Keep = cmp.Or(c.Keep, keepDefault)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Price == nil {
		c.Price = func(string) float64 { return 0 }
	}
	if c.Routes == nil {
		c.Routes = func(string) string { return "" }
	}
	if c.Transport == nil {
		c.Transport = newTransport()
	}
	var errs []error
	for _, u := range []struct{ name, url string }{
		{"Anthropic", c.Anthropic.URL}, {"OpenAI", c.OpenAI.URL}, {"ChatGPT", c.ChatGPT.URL},
	} {
		if _, err := parseBase(u.url); err != nil {
			errs = append(errs, fmt.Errorf("proxy: Config.%s: %w", u.name, err))
		}
	}
	for _, pattern := range c.Ungated {
		if _, err := path.Match(pattern, ""); err != nil || !strings.HasPrefix(pattern, "/") {
			errs = append(errs, fmt.Errorf("proxy: Config.Ungated: %.100q is no pattern of a path, as /v1/files/*", pattern))
		}
	}
	if c.Compaction != nil {
		errs = append(errs, c.Compaction.withDefaults())
	}
	return errors.Join(errs...)
}

func (c *Compaction) withDefaults() error {
	if err := c.Policy.Validate(); err != nil {
		return fmt.Errorf("proxy: Config.Compaction: %w", err)
	}
	if c.Summarizer == nil {
		c.Summarizer = compaction.Ledger{}
	}
	if c.Admitter == nil {
		c.Admitter = compaction.Rules{}
	}
	c.Policy.WindowTokens = cmp.Or(c.Policy.WindowTokens, 200_000)
	c.Policy.ThresholdTokens = cmp.Or(c.Policy.ThresholdTokens, c.Policy.WindowTokens/4)
	c.Policy.KeepRecentTokens = cmp.Or(c.Policy.KeepRecentTokens, min(20_000, c.Policy.ThresholdTokens/3))
	c.Policy.SummaryTokens = cmp.Or(c.Policy.SummaryTokens, min(4000, c.Policy.ThresholdTokens/4))
	c.Concurrent, c.Expected, c.Every = cmp.Or(c.Concurrent, 2), cmp.Or(c.Expected, 12), cmp.Or(c.Every, 10)
	c.Timeout = cmp.Or(c.Timeout, 2*time.Minute)
	return nil
}

// parseBase reads the URL of an upstream.
func parseBase(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil {
		return nil, errors.New("is no http or https URL with a host and without credentials")
	}
	return u, nil
}

// newTransport is like http.DefaultTransport, but changes nothing: no compression that the client did not ask for.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConns: 256,
		MaxIdleConnsPerHost: 64, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 10 * time.Second,
		ExpectContinueTimeout: time.Second, WriteBufferSize: 64 << 10, ReadBufferSize: 16 << 10,
	}
}

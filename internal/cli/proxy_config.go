package cli

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// ProxyConfig is about mortise proxy. Plugins, compaction and store are those of the whole config.
type ProxyConfig struct {
	// Listen is HOST:PORT for agents, Admin that of metrics and the ledger.
	Listen string `yaml:"listen"`
	Admin  string `yaml:"admin"`
	// Anthropic, OpenAI and ChatGPT are where requests go; the vendors when empty.
	Anthropic UpstreamConfig `yaml:"anthropic"`
	OpenAI    UpstreamConfig `yaml:"openai"`
	ChatGPT   UpstreamConfig `yaml:"chatgpt"`
	// Token is needed to listen beyond loopback. Clients send it in the header X-Mortise-Token.
	Token KeyConfig `yaml:"token"`
	// ActOnSigned lets plugins act on requests with an integrity value of the client or an OAuth credential.
	ActOnSigned bool `yaml:"act_on_signed"`
	// StoreOff keeps no conversation, whatever the store. Keep is how long one is kept that is not used, 720h when 0.
	StoreOff bool     `yaml:"store_off"`
	Keep     Duration `yaml:"keep"`
	// ClientKeyTokens is how many tokens a model with client_key may be asked for within an hour with the API key of one client.
	ClientKeyTokens int64 `yaml:"client_key_tokens"`
	// ExpectedCalls is how many calls a session is taken to have left, SwapEvery how many there are between two compactions.
	ExpectedCalls int `yaml:"expected_calls"`
	SwapEvery     int `yaml:"swap_every"`
}

// UpstreamConfig is a provider. Without a key clients' own credentials pass.
type UpstreamConfig struct {
	URL string    `yaml:"url"`
	Key KeyConfig `yaml:"key"`
}

// Defaults of ProxyConfig.
const (
	defaultProxy      = "127.0.0.1:8430"
	defaultProxyAdmin = "127.0.0.1:8431"
)

func (c *ProxyConfig) override(listen, admin string) error {
	c.Listen, c.Admin = cmp.Or(listen, c.Listen, defaultProxy), cmp.Or(admin, c.Admin, defaultProxyAdmin)
	host, _, err := net.SplitHostPort(c.Listen)
	var errs []error
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("proxy.listen: %.100q is not HOST:PORT, as in %s", c.Listen, defaultProxy))
	case !loopback(host) && c.Token == (KeyConfig{}):
		errs = append(errs, fmt.Errorf("proxy.listen: %.100s is reached from other machines, and there is no token; set proxy.token, or listen on 127.0.0.1", c.Listen))
	}
	if host, _, err := net.SplitHostPort(c.Admin); err != nil || !loopback(host) {
		errs = append(errs, fmt.Errorf("proxy.admin: %.100q is not HOST:PORT of this machine, as in %s", c.Admin, defaultProxyAdmin))
	}
	return errors.Join(append(errs, c.validate())...)
}

func (c *ProxyConfig) validate() error {
	var errs []error
	for _, k := range []struct {
		name string
		key  KeyConfig
	}{
		{"anthropic.key", c.Anthropic.Key}, {"openai.key", c.OpenAI.Key}, {"chatgpt.key", c.ChatGPT.Key}, {"token", c.Token},
	} {
		if k.key.Value != nil {
			errs = append(errs, fmt.Errorf("proxy.%s: value: a key does not belong in the config; name a variable with env, or a private file with file", k.name))
		}
		if k.key.Env != "" && k.key.File != "" {
			errs = append(errs, fmt.Errorf("proxy.%s: names both env and file; name one", k.name))
		}
	}
	if c.ClientKeyTokens < 0 {
		errs = append(errs, errors.New("proxy.client_key_tokens: is negative; write tokens per hour, or leave it out"))
	}
	if c.ExpectedCalls < 0 || c.SwapEvery < 0 {
		errs = append(errs, errors.New("proxy.expected_calls and proxy.swap_every: write a number from 1, or leave them out"))
	}
	return errors.Join(errs...)
}

// upstream reads the key of an upstream.
func (c *Config) upstream(name string, u UpstreamConfig) (proxy.Upstream, error) {
	out := proxy.Upstream{URL: u.URL}
	if u.Key.Env == "" && u.Key.File == "" {
		return out, nil
	}
	key, err := u.Key.read(c)
	if err != nil {
		return out, fmt.Errorf("proxy.%s.key: %w", name, err)
	}
	out.Key = key
	return out, nil
}

// listing lists the threads of a proxy among those of the mailbox.
type listing struct{}

// Query implements lane.Listing.
func (listing) Query() store.Range { return mailbox.ListedQuery() }

// Cell implements lane.Listing.
func (listing) Cell(s store.Snapshot, st *lane.State, messages int) (store.Cell, bool) {
	at := st.Used.UTC()
	return mailbox.ListedThread(s, mailbox.Thread{ID: st.ID, Parent: st.Parent, Messages: messages, CreatedAt: at, UpdatedAt: at})
}

// proxyConfig is what the config says of a proxy, with its plugins. Records may be nil.
func (c *Config) proxyConfig(parts *parts, records *thread.Recorder) (cfg proxy.Config, err error) {
	p := &c.Proxy
	var errs [4]error
	cfg.Anthropic, errs[0] = c.upstream("anthropic", p.Anthropic)
	cfg.OpenAI, errs[1] = c.upstream("openai", p.OpenAI)
	cfg.ChatGPT, errs[2] = c.upstream("chatgpt", p.ChatGPT)
	if p.Token.Env != "" || p.Token.File != "" {
		if cfg.Token, errs[3] = p.Token.read(c); errs[3] == nil && len(cfg.Token) < minToken {
			errs[3] = fmt.Errorf("proxy.token: has %d bytes; use at least %d random ones", len(cfg.Token), minToken)
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return cfg, err
	}
	cfg.Act, cfg.Keep, cfg.ClientTokens = p.ActOnSigned, time.Duration(p.Keep), p.ClientKeyTokens
	if c.home != nil && !p.StoreOff {
		cfg.Store, cfg.Listed = c.home.store, listing{}
	} else {
		records = nil
	}
	if records != nil {
		cfg.Records = records
	}
	prices := llm.DefaultPrices()
	cfg.Price = func(model string) float64 {
		price, _ := prices.Of(model)
		return price.Input / 1e6
	}
	if parts == nil {
		return cfg, nil
	}
	if list := parts.set.Plugins(); len(list) > 0 {
		pc := phases.Config{Plugins: list, HookTimeout: c.hookTimeout()}
		if records != nil {
			pc.Record = func(r phases.Record) { _ = records.Add(r.Run.RunID, thread.DecisionOf(&r)) } // an error comes again at the run's end
		}
		cfg.Runtime, err = phases.New(pc)
		if len(parts.tools.Tools()) > 0 {
			cfg.Tools = parts.tools
		}
	}
	if parts.summarizer != nil {
		summarizer, chainErr := parts.chain()
		err = errors.Join(err, chainErr)
		cfg.Compaction = &proxy.Compaction{
			Policy: c.Compaction.policy(), Summarizer: summarizer, Concurrent: c.Compaction.Concurrent,
			Timeout: time.Duration(c.Compaction.Admission.Quota.Timeout), Expected: p.ExpectedCalls, Every: p.SwapEvery,
		}
		if parts.admitter != nil {
			cfg.Compaction.Admitter = parts.admitter
		}
	}
	return cfg, err
}

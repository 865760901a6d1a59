package program

import (
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// upstream reads the key of an upstream.
func (c *Setup) upstream(name string, u config.UpstreamConfig) (proxy.Upstream, error) {
	out := proxy.Upstream{URL: u.URL}
	if u.Key.Env == "" && u.Key.File == "" {
		return out, nil
	}
	key, err := u.Key.Read(c.Config)
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

// ProxyConfig is what the config says of a proxy, with its plugins. Records may be nil.
func (c *Setup) ProxyConfig(parts *Parts, records *thread.Recorder) (cfg proxy.Config, err error) {
	p := &c.Proxy
	var errs [4]error
	cfg.Anthropic, errs[0] = c.upstream("anthropic", p.Anthropic)
	cfg.OpenAI, errs[1] = c.upstream("openai", p.OpenAI)
	cfg.ChatGPT, errs[2] = c.upstream("chatgpt", p.ChatGPT)
	if p.Token.Env != "" || p.Token.File != "" {
		if cfg.Token, errs[3] = p.Token.Read(c.Config); errs[3] == nil && len(cfg.Token) < config.MinToken {
			errs[3] = fmt.Errorf("proxy.token: has %d bytes; use at least %d random ones", len(cfg.Token), config.MinToken)
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return cfg, err
	}
	cfg.Act, cfg.Ungated, cfg.Keep, cfg.ClientTokens = p.ActOnSigned, p.Ungated, time.Duration(p.Keep), p.ClientKeyTokens
	if c.Home != nil && !p.StoreOff {
		cfg.Store, cfg.Listed = c.Home.Store, listing{}
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
	if list := parts.Set.Plugins(); len(list) > 0 {
		pc := phases.Config{Plugins: list, HookTimeout: c.HookTimeout()}
		if records != nil {
			pc.Record = func(r phases.Record) { _ = records.Add(r.Run.RunID, thread.DecisionOf(&r)) } // an error comes again at the run's end
		}
		cfg.Runtime, err = phases.New(pc)
		if len(parts.Tools.Tools()) > 0 {
			cfg.Tools = parts.Tools
		}
	}
	if parts.Summarizer != nil {
		summarizer, chainErr := parts.chain()
		err = errors.Join(err, chainErr)
		cfg.Compaction = &proxy.Compaction{
			Policy: c.Compaction.Policy(), Summarizer: summarizer, Concurrent: c.Compaction.Concurrent,
			Timeout: time.Duration(c.Compaction.Admission.Quota.Timeout), Expected: p.ExpectedCalls, Every: p.SwapEvery,
		}
		if parts.admitter != nil {
			cfg.Compaction.Admitter = parts.admitter
		}
	}
	return cfg, err
}

package proxy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// spending is what one compaction asks models.
type spending struct {
	mu    sync.Mutex
	calls []llm.Call
	// client asks with the client's key; nil where that is not permitted.
	client *clientKey
}

type spendingKey struct{}

// Observe bills what summarizers ask of models to the conversation that is compacted. It is an llm.Observe, for the models that summarizers
// are granted, and does nothing for other questions.
func Observe(ctx context.Context, _ llm.Call) (context.Context, func(llm.Call)) {
	s, ok := ctx.Value(spendingKey{}).(*spending)
	if !ok {
		return ctx, nil
	}
	return ctx, func(c llm.Call) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.calls = append(s.calls, c)
		if s.client != nil {
			s.client.settle(&c.Usage)
		}
	}
}

// bill adds what a compaction asked of models to the lane's account, which is locked, and returns it in units of fresh input of the client's
// model.
func (x *exchange) bill(s *spending) (units float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	price := x.s.cfg.Price(x.model)
	for i := range s.calls {
		c := &s.calls[i]
		u := wire.Usage{
			Input: c.Usage.PromptTokens - c.Usage.CacheReadTokens - c.Usage.CacheCreationTokens, Read: c.Usage.CacheReadTokens,
			Write5m: c.Usage.CacheCreationTokens, Output: c.Usage.CompletionTokens,
		}
		r := money.RatesOf(x.proto, x.model)
		n := r.Units(u)
		if price > 0 && c.Cost > 0 { // another model has another price
			n = c.Cost / price
		}
		x.ln.Money.Self(u, n, price)
		units += n
	}
	return units
}

// ClientKey is the transport of models that are asked with the API key of the client whose conversation is compacted, at the client's
// upstream, as far as Config.ClientTokens permits.
type ClientKey struct{}

// RoundTrip implements http.RoundTripper.
func (ClientKey) RoundTrip(r *http.Request) (*http.Response, error) {
	s, ok := r.Context().Value(spendingKey{}).(*spending)
	if !ok {
		return nil, errors.New("proxy: the key of a client is for compactions of its conversation")
	}
	if s.client == nil {
		return nil, errors.New("proxy: the key of the client may not be used: set proxy.client_key_tokens")
	}
	return s.client.ask(r)
}

// clientKey is the credential of a client, for one compaction.
type clientKey struct {
	s     *Server
	up    *upstream
	id    string
	key   http.Header
	oauth bool

	mu   sync.Mutex
	open *use
}

// use is what was asked with a key at a time, in tokens.
type use struct {
	at     time.Time
	tokens int64
}

// keys are uses of clients' keys, by their hashes.
type keys struct {
	mu      sync.Mutex
	uses    map[string][]*use
	limited map[string]bool
}

// clientKey returns how the client of a request may be asked for, nil if it may not. It keeps the credential as long as the compaction runs.
func (x *exchange) clientKey() *clientKey {
	if x.s.cfg.ClientTokens <= 0 {
		return nil
	}
	c := &clientKey{s: x.s, up: x.up, id: x.s.credential(x.r.Header), key: http.Header{}, oauth: personal(x.r.Header)}
	for _, name := range []string{"Authorization", "X-Api-Key", "Anthropic-Version"} {
		if v := x.r.Header.Values(name); len(v) > 0 {
			c.key[name] = v
		}
	}
	return c
}

// personal reports whether a request has a credential of a login, which is no API key.
func personal(h http.Header) bool {
	bearer, _ := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	return oauth(h, true) || h.Get(accountHeader) != "" || strings.HasPrefix(bearer, "eyJ") && strings.Count(bearer, ".") == 2
}

// rateLimited notes that a provider has refused a key's requests for a while: it is not used for compactions again.
func (s *Server) rateLimited(credential string) {
	s.keys.mu.Lock()
	defer s.keys.mu.Unlock()
	s.keys.limited[credential] = true
}

// reserve takes tokens from the budget of a key.
func (c *clientKey) reserve(tokens int64) error {
	k, now := &c.s.keys, c.s.cfg.Now()
	k.mu.Lock()
	defer k.mu.Unlock()
	sum := tokens
	var recent []*use
	for _, u := range k.uses[c.id] {
		if now.Sub(u.at) < time.Hour {
			recent = append(recent, u)
			sum += u.tokens
		}
	}
	k.uses[c.id] = recent
	switch {
	case c.oauth:
		return errors.New("proxy: the client has a login and no API key; give the model a key of its own")
	case k.limited[c.id]:
		return errors.New("proxy: the client's key was refused with status 429; it is left to the client")
	case sum > c.s.cfg.ClientTokens:
		return fmt.Errorf("proxy: proxy.client_key_tokens allows %d tokens an hour with the client's key", c.s.cfg.ClientTokens)
	}
	c.open = &use{now, tokens}
	k.uses[c.id] = append(recent, c.open)
	return nil
}

// tokenBytes is how many bytes of a request are taken for a token before it is counted.
const tokenBytes = 4

func (c *clientKey) ask(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	err := c.reserve(max(r.ContentLength, 0) / tokenBytes)
	c.mu.Unlock()
	if err != nil {
		c.s.stats.clientKeyRefused.Add(1)
		return nil, err
	}
	up := *c.up
	up.path = r.URL.EscapedPath()
	if strings.HasSuffix(up.base.Path, "/v1") {
		up.path = strings.TrimPrefix(up.path, "/v1")
	}
	out := r.Clone(r.Context())
	out.Host = ""
	if out.URL, err = up.base.Parse(up.url(r)); err != nil {
		return nil, err
	}
	out.Header.Del("Authorization")
	out.Header.Del("X-Api-Key")
	maps.Copy(out.Header, c.key)
	up.authorize(out.Header)
	resp, err := c.s.cfg.Transport.RoundTrip(out)
	if err == nil && resp.StatusCode == http.StatusTooManyRequests {
		c.s.rateLimited(c.id)
	}
	return resp, err
}

// settle counts what was billed instead of the estimate.
func (c *clientKey) settle(u *abi.Usage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := u.PromptTokens + u.CompletionTokens; c.open != nil && n > 0 {
		c.s.keys.mu.Lock()
		c.open.tokens = n
		c.s.keys.mu.Unlock()
	}
	c.open = nil
}

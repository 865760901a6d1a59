package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"path"
	"strings"
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
	// Ungated are patterns of paths that pass although a plugin fails closed and cannot see them.
	Ungated []string `yaml:"ungated"`
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

// Override applies flags and defaults, and checks the section.
func (c *ProxyConfig) Override(listen, admin string) error {
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
	for _, pattern := range c.Ungated {
		if _, err := path.Match(pattern, ""); err != nil || !strings.HasPrefix(pattern, "/") {
			errs = append(errs, fmt.Errorf("proxy.ungated: %.100q is no pattern of a path; write one as /v1/files/*", pattern))
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

// ValidateProxy checks the proxy's listener in mortise serve.
func (c *Config) ValidateProxy() error {
	if c.Serve.Proxy == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Serve.Proxy)
	switch {
	case err != nil:
		err = fmt.Errorf("serve.proxy: %.100q is not HOST:PORT, as in %s", c.Serve.Proxy, defaultProxy)
	case !loopback(host) && c.Proxy.Token == (KeyConfig{}):
		err = fmt.Errorf("serve.proxy: %.100s is reached from other machines, and there is no token; set proxy.token, or listen on 127.0.0.1", c.Serve.Proxy)
	}
	return errors.Join(err, c.Proxy.validate())
}

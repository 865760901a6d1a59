package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Config configures [Open].
type Config struct {
	Servers []ServerConfig
	// Logger; nil discards.
	Logger *slog.Logger
	// Grace is how long a server may take to end after its input was closed, and again after SIGTERM; 3 s when 0. Then
	// its process group is killed.
	Grace time.Duration
	// Backoff is the time before a restart, 1 s when 0. It doubles up to MaxBackoff, 1 min when 0, and is reset by a
	// session that lasted longer than that.
	Backoff, MaxBackoff time.Duration
}

// ServerConfig configures one server: a Command, or a URL.
type ServerConfig struct {
	// Name is part of the names of the tools: at most 32 letters, digits, '-' and '_', without "__".
	Name string
	// Command is the program of a server that runs as a child, in the folder Dir. Env is added to the few variables
	// that it inherits.
	Command string
	Args    []string
	Env     map[string]string
	Dir     string
	// URL is the endpoint of a server over streamable HTTP. Headers are sent with each request; their values are secrets.
	URL     string
	Headers map[string]string
	// StartTimeout bounds the start and each listing of tools, 30 s when 0. CallTimeout bounds a call, 2 min when 0.
	StartTimeout, CallTimeout time.Duration
	// MaxOutput is how many bytes of text and data a result may have, 256 KiB when 0; more is cut off. Images, audio and
	// documents have a bound of their own, 4 MiB together.
	MaxOutput int
	// MaxTools is how many tools are listed, 128 when 0; more are left out.
	MaxTools int
	// Include, when not empty, lists the only tools to offer, by the server's names. Exclude lists tools to leave out.
	Include, Exclude []string
	// Kinds overrides the kinds of tools, by the server's names.
	Kinds map[string]abi.ToolKind
	// Required makes Open fail when the server does not start. Otherwise it is retried in the background.
	Required bool
}

func (c Config) withDefaults() Config {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.Grace = cmp.Or(c.Grace, 3*time.Second)
	c.Backoff = cmp.Or(c.Backoff, time.Second)
	c.MaxBackoff = max(cmp.Or(c.MaxBackoff, time.Minute), c.Backoff)
	c.Servers = slices.Clone(c.Servers)
	for i := range c.Servers {
		s := &c.Servers[i]
		s.StartTimeout = cmp.Or(s.StartTimeout, 30*time.Second)
		s.CallTimeout = cmp.Or(s.CallTimeout, 2*time.Minute)
		s.MaxOutput = cmp.Or(s.MaxOutput, 256<<10)
		s.MaxTools = cmp.Or(s.MaxTools, 128)
	}
	return c
}

// validate returns everything that is wrong with a config, each with the name of its server.
func (c Config) validate() error {
	errs := []error{nil}
	if c.Grace < 0 || c.Backoff < 0 || c.MaxBackoff < 0 {
		errs = append(errs, errors.New("mcp: Grace, Backoff and MaxBackoff must not be negative"))
	}
	names := make(map[string]bool)
	for i := range c.Servers {
		s := &c.Servers[i]
		if err := s.validate(); err != nil {
			errs = append(errs, fmt.Errorf("mcp: server %.40q: %w", s.Name, err))
		}
		if names[s.Name] {
			errs = append(errs, fmt.Errorf("mcp: server %.40q: another server has that name; rename one", s.Name))
		}
		names[s.Name] = true
	}
	return errors.Join(errs...)
}

func (c *ServerConfig) validate() error {
	switch {
	case len(c.Name) > maxServerName || !regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9-]|_[a-zA-Z0-9-])*$`).MatchString(c.Name):
		return fmt.Errorf("the Name must be 1 to %d letters, digits, '-' and single '_', and begin with a letter or digit", maxServerName)
	case (c.Command == "") == (c.URL == ""):
		return errors.New("set Command, or URL, and not both")
	case c.URL != "" && (len(c.Args) > 0 || len(c.Env) > 0 || c.Dir != ""):
		return errors.New("fields Args, Env and Dir belong to a Command")
	case c.Command != "" && len(c.Headers) > 0:
		return errors.New("field Headers belongs to a URL")
	case c.StartTimeout < 0 || c.CallTimeout < 0 || c.MaxOutput < 0 || c.MaxTools < 0:
		return errors.New("timeouts, MaxOutput and MaxTools must not be negative")
	}
	for name := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			return fmt.Errorf("in Env, %.40q is not the name of a variable", name)
		}
	}
	for tool, kind := range c.Kinds {
		if !slices.Contains([]abi.ToolKind{abi.ToolRead, abi.ToolSearch, abi.ToolEdit, abi.ToolExecute, abi.ToolOther}, kind) {
			return fmt.Errorf("in Kinds, tool %.80q: %.40q is not one of read, search, edit, execute, other", tool, kind)
		}
	}
	if c.URL == "" {
		return nil
	}
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("the URL must be an absolute http or https address") // its text may have a secret
	}
	return nil
}

// redactor strikes out secrets: values of the environment and of headers, and all of the URL but its origin.
func (c *ServerConfig) redactor() *strings.Replacer {
	var pairs []string
	hide := func(secret string) {
		if len(secret) >= minSecret {
			pairs = append(pairs, secret, "[redacted]")
		}
	}
	for _, v := range c.Env {
		hide(v)
	}
	for _, v := range c.Headers {
		hide(v)
		_, credentials, _ := strings.Cut(v, " ")
		hide(credentials)
	}
	if u, err := url.Parse(c.URL); err == nil && u.Host != "" {
		pairs = append(pairs, c.URL, u.Scheme+"://"+u.Host, u.Redacted(), u.Scheme+"://"+u.Host)
		hide(strings.TrimPrefix(u.Path, "/"))
		hide(u.RawQuery)
	}
	return strings.NewReplacer(pairs...)
}

// minSecret is the length of the shortest value that is struck out: "1" and "true" would be found everywhere.
const minSecret = 6

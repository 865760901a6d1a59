package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/serve"
)

// ServeConfig is about mortise serve. MORTISE_LISTEN, MORTISE_ADMIN and MORTISE_WORKERS override
// it, and flags override these.
type ServeConfig struct {
	// Listen is HOST:PORT of the API, Admin that of the operator's API.
	Listen string `yaml:"listen"`
	Admin  string `yaml:"admin"`
	// Proxy is HOST:PORT for agents whose requests to models are forwarded as mortise proxy does, none when empty. Its settings are those of proxy.
	Proxy string `yaml:"proxy"`
	// Tokens are needed to listen beyond loopback.
	Tokens  []TokenConfig `yaml:"tokens"`
	Origins []string      `yaml:"origins"`
	Hosts   []string      `yaml:"hosts"`
	// Workers is how many runs this process executes at once.
	Workers int `yaml:"workers"`
	// Lease is how long a run of a process that died keeps its thread.
	Lease Duration `yaml:"lease"`
	// MaxAttempts is how often a run is executed whose process died or whose model failed, 5 when 0.
	MaxAttempts int `yaml:"max_attempts"`
	// Grace is how long shutdown waits for runs to end. Those that are still under way are then cut off, and other processes continue them.
	Grace Duration `yaml:"grace"`
	// Retention is how long things are kept. Nothing is dropped that is queued, executed, waiting or paused.
	Retention RetentionConfig `yaml:"retention"`
}

// RetentionConfig bounds what the store keeps. Zero is the default: all threads and runs are kept.
type RetentionConfig struct {
	// Threads is how long a thread is kept after its last change, MaxThreads how many are kept.
	Threads    Duration `yaml:"threads"`
	MaxThreads int      `yaml:"max_threads"`
	// Runs is how long a run is kept after its end, MaxRuns how many of a thread.
	Runs    Duration `yaml:"runs"`
	MaxRuns int      `yaml:"max_runs"`
	// Messages is how long the content of a message is kept that a compaction covers, MaxMessages of how many messages of a thread.
	Messages    Duration `yaml:"messages"`
	MaxMessages int      `yaml:"max_messages"`
	// Outputs is how long a large output of a tool or a background task is kept, MaxOutputs how many are.
	Outputs    Duration `yaml:"outputs"`
	MaxOutputs int      `yaml:"max_outputs"`
	// Requests is how long a request is kept that was executed, and DeadLetters one that failed.
	Requests    Duration `yaml:"requests"`
	DeadLetters Duration `yaml:"dead_letters"`
}

// Mailbox is the part that is for the mailbox.
func (c *RetentionConfig) Mailbox() mailbox.Retention {
	return mailbox.Retention{
		TTL: time.Duration(c.Requests), DeadTTL: time.Duration(c.DeadLetters), Threads: time.Duration(c.Threads), MaxThreads: c.MaxThreads,
		Runs: time.Duration(c.Runs), MaxRuns: c.MaxRuns, Messages: time.Duration(c.Messages), MaxMessages: c.MaxMessages,
	}
}

func (c *RetentionConfig) validate() error {
	for name, n := range map[string]int{"max_threads": c.MaxThreads, "max_runs": c.MaxRuns, "max_messages": c.MaxMessages, "max_outputs": c.MaxOutputs} {
		if n < 0 {
			return fmt.Errorf("serve.retention.%s: is %d; write a number from 1, or leave it out", name, n)
		}
	}
	return nil
}

// TokenConfig is a bearer token and what it may be used for: run, read, admin.
type TokenConfig struct {
	Name   string   `yaml:"name"`
	Env    string   `yaml:"env"`
	File   string   `yaml:"file"`
	Scopes []string `yaml:"scopes" jsonschema:"required,enum=run,enum=read,enum=admin"`
	// Value is refused: a token does not belong in the config.
	Value any `yaml:"value" jsonschema:"-"`
}

// Defaults of ServeConfig.
const (
	defaultListen = "127.0.0.1:8420"
	DefaultAdmin  = "127.0.0.1:8421"
)

// MinToken is how long a token must be at least, in bytes.
const MinToken = 16

// Override applies the environment, and flags over it.
func (c *ServeConfig) Override(listen, admin string, workers int) error {
	c.Listen = cmp.Or(listen, os.Getenv("MORTISE_LISTEN"), c.Listen, defaultListen)
	c.Admin = cmp.Or(admin, os.Getenv("MORTISE_ADMIN"), c.Admin, DefaultAdmin)
	if text := os.Getenv("MORTISE_WORKERS"); workers == 0 && text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("MORTISE_WORKERS: is %.40q; write a number from 1", text)
		}
		workers = n
	}
	c.Workers = cmp.Or(workers, c.Workers)
	return c.Validate()
}

// Validate checks the section.
func (c *ServeConfig) Validate() error {
	var errs []error
	if c.Workers < 0 || c.MaxAttempts < 0 {
		errs = append(errs, fmt.Errorf("serve.workers and serve.max_attempts: are %d and %d; write a number from 1, or leave it out", c.Workers, c.MaxAttempts))
	}
	if c.Lease != 0 && time.Duration(c.Lease) < time.Second {
		errs = append(errs, fmt.Errorf("serve.lease: is %s; write 1s or more", time.Duration(c.Lease)))
	}
	errs = append(errs, c.Retention.validate())
	seen := map[string]bool{}
	for i, t := range c.Tokens {
		errs = append(errs, exit.Under(fmt.Sprintf("serve.tokens[%d] (%.64s)", i, cmp.Or(t.Name, "without a name")), t.validate(seen)))
	}
	for i, o := range c.Origins {
		if err := (&serve.Config{Origins: []string{o}}).CheckAccess(); err != nil {
			errs = append(errs, fmt.Errorf("serve.origins[%d]: %.200q is not an origin; write it as https://app.example.com", i, o))
		}
	}
	return errors.Join(append(errs, exit.Under("serve.listen", c.validateAddress(c.Listen)), exit.Under("serve.admin", c.validateAddress(c.Admin)))...)
}

// validate notes the name in seen.
func (t *TokenConfig) validate(seen map[string]bool) error {
	var errs []error
	if t.Value != nil {
		errs = append(errs, errors.New("value: a token may not be in the config; name a variable with env, or a private file with file"))
	} else if (t.Env == "") == (t.File == "") {
		errs = append(errs, errors.New("name either env or file"))
	}
	if t.Name == "" || seen[t.Name] {
		errs = append(errs, errors.New("name: is missing or taken; logs name the token by it"))
	}
	seen[t.Name] = true
	if len(t.Scopes) == 0 {
		errs = append(errs, errors.New("scopes: is empty; name some of run, read, admin"))
	}
	for _, s := range t.Scopes {
		if !slices.Contains([]string{serve.ScopeRun, serve.ScopeRead, serve.ScopeAdmin}, s) {
			errs = append(errs, fmt.Errorf("scopes: %.40q is not one of run, read, admin", s))
		}
	}
	return errors.Join(errs...)
}

func (c *ServeConfig) validateAddress(address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%.100q is not HOST:PORT, as in %s", address, defaultListen)
	}
	if len(c.Tokens) == 0 && !loopback(host) {
		return fmt.Errorf("%.100s is reached from other machines, and there is no token; add an entry to serve.tokens, or listen on 127.0.0.1", address)
	}
	return nil
}

// loopback reports whether only this machine reaches a host. A name other than localhost may
// mean anything.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

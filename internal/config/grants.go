package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"

	"github.com/mortise-dev/mortise/internal/exit"
)

// GrantsConfig is what a module may do beyond computing. Nothing is granted
// that is not named.
type GrantsConfig struct {
	Log bool `yaml:"log"`
	// LogLevel is the least level of a module's messages; debug when empty.
	LogLevel string            `yaml:"log_level" jsonschema:"enum=debug,enum=info,enum=warn,enum=error"`
	Clock    bool              `yaml:"clock"`
	Random   bool              `yaml:"random"`
	Sticky   bool              `yaml:"sticky"`
	Values   map[string]string `yaml:"values"`
	HTTP     *HTTPConfig       `yaml:"http"`
	// Secrets are credentials by their names. A value is never in the file.
	Secrets map[string]SecretConfig `yaml:"secrets"`
	KV      *KVConfig               `yaml:"kv"`
	Files   []FilesConfig           `yaml:"files"`
	// Model lets the module ask models: keys of models, by the role under which it asks.
	Model map[string]string `yaml:"model"`
}

// HTTPConfig grants requests. Zeros are the host's defaults.
type HTTPConfig struct {
	Hosts []string `yaml:"hosts"`
	// Private are address ranges that are not public and may be reached.
	Private         []string `yaml:"private"`
	Plain           bool     `yaml:"plain"`
	Methods         []string `yaml:"methods"`
	Timeout         Duration `yaml:"timeout"`
	Redirects       int      `yaml:"redirects"`
	PerMinute       int      `yaml:"per_minute"`
	BytesPerMinute  int64    `yaml:"bytes_per_minute"`
	Concurrent      int      `yaml:"concurrent"`
	RequestKiB      int      `yaml:"request_kib"`
	ResponseKiB     int      `yaml:"response_kib"`
	ResponseHeaders bool     `yaml:"response_headers"`
}

// SecretConfig names the place that the value of a secret is read from.
type SecretConfig struct {
	// Env names a variable of the environment, File a file that no other user can read or write.
	Env     string   `yaml:"env"`
	File    string   `yaml:"file"`
	Hosts   []string `yaml:"hosts"`
	Headers []string `yaml:"headers"`
	Plain   bool     `yaml:"plain"`
	// Value is there to be refused.
	Value any `yaml:"value" jsonschema:"-"`
}

// KVConfig grants a key-value space.
type KVConfig struct {
	// Path of a file, which several modules may name. Memory is lost at the end.
	Path      string `yaml:"path"`
	Memory    bool   `yaml:"memory"`
	Namespace string `yaml:"namespace"`
	ReadOnly  bool   `yaml:"read_only"`
	Keys      int    `yaml:"keys"`
	MiB       int64  `yaml:"mib"`
	ValueKiB  int    `yaml:"value_kib"`
}

// FilesConfig grants a folder.
type FilesConfig struct {
	Host     string `yaml:"host"`
	Guest    string `yaml:"guest"`
	Writable bool   `yaml:"writable"`
	MiB      int64  `yaml:"mib"`
}

// validate names the first key that is wrong.
func (g *GrantsConfig) validate() error {
	_, err := g.Level()
	errs := []error{err, g.HTTP.validate(), g.KV.validate()}
	if g.LogLevel != "" && !g.Log {
		errs = append(errs, errors.New("grants.log_level: is of no use without log; write log: true"))
	}
	if len(g.Secrets) > 0 && g.HTTP == nil {
		errs = append(errs, errors.New("grants.secrets: are of no use without http; grant http with its hosts, or leave them out"))
	}
	for _, name := range slices.Sorted(maps.Keys(g.Secrets)) {
		secret := g.Secrets[name]
		errs = append(errs, exit.Under(fmt.Sprintf("grants.secrets.%.64q", name), secret.validate()))
	}
	for i, f := range g.Files {
		at := fmt.Sprintf("grants.files[%d]", i)
		if f.Host == "" || f.Guest == "" {
			errs = append(errs, fmt.Errorf("%s: host or guest is missing; write {host: FOLDER, guest: /data}", at))
		}
		errs = append(errs, within(at+".mib", f.MiB, maxMiB))
	}
	return errors.Join(errs...)
}

// Level is the least level of messages.
func (g *GrantsConfig) Level() (slog.Level, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cmp.Or(g.LogLevel, "debug"))); err != nil {
		return level, fmt.Errorf("grants.log_level: %.40q must be debug, info, warn or error", g.LogLevel)
	}
	return level, nil
}

func (h *HTTPConfig) validate() error {
	if h == nil {
		return nil
	}
	_, err := h.Prefixes()
	errs := []error{err}
	if len(h.Hosts) == 0 {
		errs = append(errs, errors.New(`grants.http.hosts: is empty; name the hosts, or "*" for any public one`))
	}
	if h.Redirects < -1 {
		errs = append(errs, fmt.Errorf("grants.http.redirects: is %d; write a number, or -1 for none", h.Redirects))
	}
	return errors.Join(append(
		errs,
		within("grants.http.per_minute", int64(h.PerMinute), maxMiB),
		within("grants.http.bytes_per_minute", h.BytesPerMinute, maxMiB<<20),
		within("grants.http.concurrent", int64(h.Concurrent), maxKiB),
		within("grants.http.request_kib", int64(h.RequestKiB), maxKiB),
		within("grants.http.response_kib", int64(h.ResponseKiB), maxKiB),
	)...)
}

// Prefixes reads the address ranges; an address alone is a range of one.
func (h *HTTPConfig) Prefixes() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for i, text := range h.Private {
		p, err := netip.ParsePrefix(text)
		if a, addrErr := netip.ParseAddr(text); err != nil && addrErr == nil {
			p, err = a.Prefix(a.BitLen())
		}
		if err != nil {
			return nil, fmt.Errorf("grants.http.private[%d]: %.80q is not a range of addresses; write for example 10.1.0.0/16 or 127.0.0.1", i, text)
		}
		out = append(out, p)
	}
	return out, nil
}

func (s *SecretConfig) validate() error {
	switch {
	case s.Value != nil:
		return errors.New("value: a secret may not be in the config; name a variable with env, or a private file with file")
	case (s.Env == "") == (s.File == ""):
		return errors.New("name either a variable with env, or a file with file")
	case len(s.Hosts) == 0:
		return errors.New("hosts: is empty; name where the secret may be sent")
	}
	return nil
}

func (k *KVConfig) validate() error {
	switch {
	case k == nil:
		return nil
	case (k.Path == "") != k.Memory:
		return errors.New("grants.kv: name either a file with path, or write memory: true")
	}
	return errors.Join(
		within("grants.kv.keys", int64(k.Keys), maxMiB),
		within("grants.kv.mib", k.MiB, maxMiB),
		within("grants.kv.value_kib", int64(k.ValueKiB), maxKiB),
	)
}

// Bounds on sizes, so that no unit overflows.
const (
	maxKiB = 1 << 20
	maxMiB = 1 << 20
)

// within refuses a number that is negative or absurd.
func within(key string, n, limit int64) error {
	if n < 0 || n > limit {
		return fmt.Errorf("%s: is %d; write a number from 1 to %d, or leave it out for the default", key, n, limit)
	}
	return nil
}

package config

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Shown is the name of a store without credentials, and without options, of which one may be a password. What could be either is left out.
func Shown(name string) string {
	scheme, rest, _ := strings.Cut(name, "://")
	if !IsURL(name) {
		return name
	}
	at, options := strings.LastIndex(rest, "@"), strings.Index(rest, "?")
	if options >= 0 && options < at {
		return scheme + "://..."
	}
	rest, _, _ = strings.Cut(rest[at+1:], "?")
	return scheme + "://" + rest
}

// Located is the name of a store as [Shown] gives it, with the schema that it is in, if that is named.
func Located(name string) string {
	_, query, _ := strings.Cut(name, "?")
	options, err := url.ParseQuery(query)
	if schema := options.Get("schema"); IsURL(name) && err == nil && schema != "" {
		return fmt.Sprintf("%s, schema %.40q", Shown(name), schema)
	}
	return Shown(name)
}

// IsURL reports whether a store is named by a URL, and not by a path.
func IsURL(name string) bool { return strings.Contains(name, "://") }

// InMemory is the name of a store that keeps nothing. A file of this name is ./memory.
const InMemory = "memory"

// StoreOf is the store of a flag, of the environment, or of the config; empty for one in memory.
func (c *Config) StoreOf(flag string) string {
	name := cmp.Or(flag, os.Getenv("MORTISE_STORE"))
	if name == "" && c.Store != InMemory {
		name = c.Path(c.Store)
	}
	if name == InMemory {
		return ""
	}
	return name
}

// checkStore refuses the URL of what is no store.
func checkStore(key, name string) error {
	scheme, _, _ := strings.Cut(name, "://")
	known := []string{"postgres", "postgresql", "nats", "tls"}
	if !IsURL(name) || slices.Contains(known, scheme) {
		return nil
	}
	return fmt.Errorf("%s: %.20q is no kind of store; name a SQLite file, nats://HOST:4222/STREAM, or postgres://USER@HOST/DATABASE%s", key, scheme, Meant(scheme, known))
}

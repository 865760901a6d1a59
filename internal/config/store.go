package config

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
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

// StoreOf is the store of a flag, of the environment, or of the config.
func (c *Config) StoreOf(flag string) string {
	return cmp.Or(flag, os.Getenv("MORTISE_STORE"), c.Path(c.Store))
}

package natsstore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
)

// Defaults of [Config].
const (
	DefaultStream   = "mortise"
	DefaultWait     = 5 * time.Second
	DefaultPatience = 20 * time.Second
	DefaultMemory   = 64 << 20
	DefaultEventTTL = time.Hour
)

// Config opens a [Store]. Zero fields mean their defaults.
type Config struct {
	// URL has the servers, separated by commas. Required. It may have credentials.
	URL string
	// Options are more options of the connection, such as certificates and credentials.
	Options []nats.Option
	// Stream is the name of the stream and the first word of its subjects. Stores with one Stream share everything.
	Stream string
	// Replicas is on how many servers the stream is kept when it is made: 1, 3 or 5. The default is 1 on a single server; on a cluster it is
	// required. An existing stream stays as it is; one with fewer replicas than this is refused.
	Replicas int
	// Existing opens only what exists: nothing is made, and a missing stream is an fs.ErrNotExist.
	Existing bool
	// Wait bounds one answer of a server, Patience the retries while no server can answer.
	Wait, Patience time.Duration
	// Memory is about how many bytes of log entries are kept in memory. Larger logs are read from the servers. Cells are always in memory.
	Memory int
	// EventTTL is how long the servers keep events, if this process makes their stream.
	EventTTL time.Duration
	// Logger receives what is wrong with the servers. Nil discards, except that slog.Default() gets the warnings of [Open] about servers that
	// may lose what they acknowledge.
	Logger *slog.Logger

	warnings *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Stream = cmp.Or(c.Stream, DefaultStream)
	c.Wait = cmp.Or(c.Wait, DefaultWait)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	c.Memory = cmp.Or(c.Memory, DefaultMemory)
	c.EventTTL = cmp.Or(c.EventTTL, DefaultEventTTL)
	c.warnings = c.Logger
	if c.Logger == nil {
		c.warnings = slog.Default() //nolint:forbidigo // an operator must learn of servers that lose data
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.URL == "":
		return errors.New("natsstore: Config.URL is empty; name a server, as in nats://127.0.0.1:4222")
	case !regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`).MatchString(c.Stream):
		return fmt.Errorf("natsstore: Config.Stream %.80q: use letters, digits, - and _, at most 64", c.Stream)
	case c.Replicas != 0 && c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5:
		return fmt.Errorf("natsstore: Config.Replicas is %d; it can be 1, 3 or 5", c.Replicas)
	case c.Wait <= 0 || c.Patience <= 0 || c.EventTTL <= 0:
		return errors.New("natsstore: Config.Wait, Config.Patience and Config.EventTTL must be positive")
	case c.Memory < 0:
		return errors.New("natsstore: Config.Memory is negative")
	}
	return nil
}

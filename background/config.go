package background

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/abi"
)

// Defaults of [Config].
const (
	DefaultMaxRunning = 16
	DefaultMaxQueued  = 1024
	DefaultKeep       = 1024
	DefaultTimeout    = 10 * time.Minute
	DefaultGrace      = 5 * time.Second
)

// Sentinels of Spawn.
var (
	ErrClosed    = errors.New("background: manager is closed")
	ErrQueueFull = errors.New("background: too many tasks wait for a place")
)

// Config makes a [Manager]. Only Deliver is required.
type Config struct {
	// Deliver hands a notice to the owner of a thread. It may wait for room until
	// ctx is done. On an error the notice must not have been accepted. It must not
	// call the Manager.
	Deliver func(ctx context.Context, thread string, n abi.Notice) error
	// NewID makes task ids, unique across processes. Nil means "bg_" and a
	// time-ordered UUID.
	NewID func() string
	// Now is the clock for the times in [Info]. Nil means time.Now.
	Now func() time.Time
	// MaxRunning bodies run at a time; MaxQueued more may wait.
	MaxRunning int
	MaxQueued  int
	// Keep is how many ended tasks stay readable through Get and List.
	Keep int
	// Timeout ends a body that runs longer, unless its Spec says otherwise.
	Timeout time.Duration
	// Grace is how long a cancelled body may take to return.
	Grace time.Duration
	// Logger gets abandoned bodies, panics and lost notices. Nil discards.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.NewID == nil {
		c.NewID = func() string { return "bg_" + uuid.Must(uuid.NewV7()).String() }
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	c.MaxRunning = cmp.Or(c.MaxRunning, DefaultMaxRunning)
	c.MaxQueued = cmp.Or(c.MaxQueued, DefaultMaxQueued)
	c.Keep = cmp.Or(c.Keep, DefaultKeep)
	c.Timeout = cmp.Or(c.Timeout, DefaultTimeout)
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	return c
}

func (c Config) validate() error {
	if c.Deliver == nil {
		return errors.New("background: Config.Deliver is missing")
	}
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"MaxRunning", int64(c.MaxRunning)},
		{"MaxQueued", int64(c.MaxQueued)},
		{"Keep", int64(c.Keep)},
		{"Timeout", int64(c.Timeout)},
		{"Grace", int64(c.Grace)},
	} {
		if f.value < 0 {
			return fmt.Errorf("background: Config.%s is negative", f.name)
		}
	}
	return nil
}

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
	DefaultName     = "mailbox"
	DefaultWait     = 2 * time.Second
	DefaultPatience = 20 * time.Second
	// DefaultOrphanAge is how old records are that nobody refers to when they are dropped.
	DefaultOrphanAge = 15 * time.Minute
	DefaultMemory    = 64 << 20
)

// Config opens a [Store]. Zero fields mean their defaults.
type Config struct {
	// URL has the servers, separated by commas. Required. It may have credentials.
	URL string
	// Options are more options of the connection, such as certificates and credentials.
	Options []nats.Option
	// Name is that of the stream, and the first word of its subjects. Stores of one name share everything. The subjects
	// of live control begin with the name and "-live".
	Name string
	// Replicas is on how many servers the stream is kept when it is made: 1, 3 or 5. By default it is 1 on a server that stands alone; on a
	// cluster it has to be said. A stream that is there stays as it is, and is the default of those beside it; one with fewer copies than
	// this is refused.
	Replicas int
	// Existing opens only what is there: nothing is made, and a stream that is not there is an fs.ErrNotExist. It is for programs that
	// read.
	Existing bool
	// Wait is how long one answer of a server may take, Patience how long an operation goes on when there is none.
	Wait, Patience time.Duration
	// OrphanAge is how old a record is at least that is dropped because nobody refers to it, such as one of a process that died
	// between two writes. A writer gives up what it began half as long ago: all stores of a name need the same.
	OrphanAge time.Duration
	// Memory is how many bytes may be used, about, to keep what is known of threads, which saves reads: half of it for what they
	// lately did, the other half for queues of more than 64. A queued dispatch takes up to 768 bytes of it. Of the longest queues the last one
	// used is kept whatever it takes.
	Memory int
	// Monitor are addresses of the servers' monitoring, as in http://127.0.0.1:8222. What they
	// say of sync_always is checked.
	Monitor []string
	// Logger is told what is wrong with the servers. Nil is nobody, except that slog.Default() gets what [Open] warns of: servers
	// that may lose what they acknowledge.
	Logger *slog.Logger

	warnings *slog.Logger
}

var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, DefaultName)
	c.Wait = cmp.Or(c.Wait, DefaultWait)
	c.Patience = cmp.Or(c.Patience, DefaultPatience)
	c.OrphanAge = cmp.Or(c.OrphanAge, DefaultOrphanAge)
	c.Memory = cmp.Or(c.Memory, DefaultMemory)
	c.warnings = c.Logger
	if c.Logger == nil {
		c.warnings = slog.Default() //nolint:forbidigo // somebody has to hear of servers that lose data
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.URL == "":
		return errors.New("natsstore: Config.URL is empty; name a server, as in nats://127.0.0.1:4222")
	case !validName.MatchString(c.Name):
		return fmt.Errorf("natsstore: Config.Name %.80q: use letters, digits, - and _, at most 64", c.Name)
	case c.Replicas != 0 && c.Replicas != 1 && c.Replicas != 3 && c.Replicas != 5:
		return fmt.Errorf("natsstore: Config.Replicas is %d; it can be 1, 3 or 5", c.Replicas)
	case c.Wait <= 0 || c.Patience <= 0 || c.OrphanAge <= 0:
		return errors.New("natsstore: Config.Wait, Config.Patience and Config.OrphanAge must be positive")
	case c.Memory < 0:
		return errors.New("natsstore: Config.Memory is negative; leave it out, or say how many bytes")
	}
	return nil
}

package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/thread"
)

// Config makes a [Server]. Runtime is required. Routes for what is nil are absent.
type Config struct {
	Runtime *mortise.Runtime
	// Agents are those of the Runtime. Requests for others are refused; none are when it is empty.
	Agents []AgentInfo
	// Modules are the loaded plugins and policies.
	Modules Modules
	// Records has the decisions of runs, Sessions the compactions of threads.
	Records  RecordReader
	Sessions SessionReader

	// Tokens are those that clients use. Without tokens only loopback peers are served.
	Tokens []Token
	// Origins are those of web pages that may use the API, as "https://app.example.com", besides
	// the server's own. Hosts are names, without a port, under which the server is reached
	// without a token, besides those of the loopback interface.
	Origins, Hosts []string
	Limits         Limits

	// Reload reads the configuration again and returns what has changed. An error that is a [*Refused] is
	// shown to the client.
	Reload func(context.Context) (changed []string, err error)
	// Facts is called for each GET /v1/status.
	Facts func() Facts
	// Ready fails when requests cannot be served, as when the store does not respond.
	Ready func(context.Context) error
	// Metrics is GET /metrics.
	Metrics http.Handler
	// Version is shown in GET /v1/status and in the OpenAPI document.
	Version string
	Now     func() time.Time
	Logger  *slog.Logger
}

// AgentInfo describes an agent.
type AgentInfo struct {
	Name  string `json:"name"`
	Model string `json:"model,omitempty"`
}

// RecordReader reads the decision record of a run. A [thread.Records] is one.
type RecordReader interface {
	In(ctx context.Context, thread, run string) (*thread.Record, error)
}

// SessionReader reads what is kept of a thread's compactions. A [thread.Threads] is one.
type SessionReader interface {
	Events(ctx context.Context, thread string) ([]compaction.Event, error)
	State(ctx context.Context, thread string) (compaction.State, uint64, error)
}

// Limits bound requests. Zero fields take defaults, negative ones are no limit.
type Limits struct {
	// Body is the size of a request, 8 MiB; Header that of its header, 64 KiB, see [Server.HTTP].
	Body   int64
	Header int
	// Streams is how many event streams are open at once, 1000.
	Streams int
	// Rate is how many requests per second each token has, or each peer without tokens, 500, and
	// Burst how many at once, 1000.
	Rate  float64
	Burst int
	// SlowBytes is how far a reader that has once kept up with a run may fall behind, in bytes of
	// events, 1 MiB. Its stream ends then, and continues when it connects again.
	SlowBytes int
	// Heartbeat is how long a stream is silent at most, 15 s.
	Heartbeat time.Duration
	// Read is how long a request may take to arrive, Write one write of a response, 30 s each.
	Read, Write time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Body = cmp.Or(l.Body, 8<<20)
	l.Header = cmp.Or(l.Header, 64<<10)
	l.Streams = cmp.Or(l.Streams, 1000)
	l.Rate, l.Burst = cmp.Or(l.Rate, 500), cmp.Or(l.Burst, 1000)
	l.SlowBytes = cmp.Or(l.SlowBytes, 1<<20)
	l.Heartbeat = cmp.Or(max(l.Heartbeat, 0), 15*time.Second)
	l.Read, l.Write = cmp.Or(max(l.Read, 0), 30*time.Second), cmp.Or(max(l.Write, 0), 30*time.Second)
	return l
}

func (c Config) checked() (Config, error) {
	if c.Runtime == nil {
		return c, errors.New("Config.Runtime is nil: make one with mortise.New")
	}
	if err := c.CheckAccess(); err != nil {
		return c, err
	}
	c.Limits, c.Version = c.Limits.withDefaults(), cmp.Or(c.Version, "dev")
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c, nil
}

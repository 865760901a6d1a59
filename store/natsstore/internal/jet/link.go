package jet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Link is a connection, and how it is used.
type Link struct {
	JS jetstream.JetStream
	// Name is that of the mailbox. Streams beside it begin with it.
	Name string
	// Replicas is on how many servers a stream is kept when it is made; 0 is one, and is refused on a cluster.
	Replicas int
	// Asked is on how many servers a stream has to be kept that is there already; 0 is any number.
	Asked int
	// Existing refuses a stream that is not there, in place of making it.
	Existing bool
	// Wait is how long one answer may take, Patience how long to ask when there is none.
	Wait, Patience time.Duration
	Logger         *slog.Logger
	// Warnings is told of streams that the loss of a server loses.
	Warnings *slog.Logger

	// leaders tells of new ones, if somebody watches.
	leaders leaders
}

// Stream keeps records.
type Stream struct {
	jetstream.Stream

	link   *Link
	quorum quorum
}

// Open opens the stream of a config, or makes it. What names what is kept there, as in "the mailbox". It warns about a
// stream that the loss of a server loses.
func (l *Link) Open(ctx context.Context, what string, want jetstream.StreamConfig) (*Stream, error) {
	want.Storage, want.Replicas, want.Retention, want.Discard = jetstream.FileStorage, max(l.Replicas, 1), jetstream.LimitsPolicy, jetstream.DiscardNew
	s := &Stream{link: l}
	err := l.ask(ctx, func(ctx context.Context) error { return s.open(ctx, what, want) })
	if err != nil {
		return nil, fmt.Errorf("natsstore: stream %q: %w", want.Name, err)
	}
	if n := s.CachedInfo().Config.Replicas; n < minReplicas {
		l.Warnings.WarnContext(ctx, "natsstore_not_replicated", "stream", want.Name, "replicas", n,
			"hint", "the loss of a server loses "+what+"; use a cluster of three and replicas 3")
	}
	return s, nil
}

const minReplicas = 3

func (s *Stream) open(ctx context.Context, what string, want jetstream.StreamConfig) (err error) {
	s.Stream, err = s.link.JS.Stream(ctx, want.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if s.link.Existing {
			return errAbsent
		}
		if name := s.link.JS.Conn().ConnectedClusterName(); name != "" && s.link.Replicas == 0 {
			return fmt.Errorf("the servers are a cluster, %.80q, and Config.Replicas is not set: say 3, so that the loss of a server loses nothing, or 1 to keep it on one of them", name)
		}
		s.Stream, err = s.link.JS.CreateStream(ctx, want)
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			s.Stream, err = s.link.JS.Stream(ctx, want.Name)
		}
	}
	if err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	if n := s.CachedInfo().Config.Replicas; n < s.link.Asked {
		return fmt.Errorf("it is kept on %d of the servers, and replicas is %d: let the server copy it (nats stream edit %s --replicas %d), or leave replicas out",
			n, s.link.Asked, want.Name, s.link.Asked)
	}
	return fits(what, s.CachedInfo().Config, want)
}

// absent is an fs.ErrNotExist of a stream.
type absent string

func (a absent) Error() string { return string(a) }

func (absent) Is(target error) bool { return target == fs.ErrNotExist }

const errAbsent = absent("the servers have no such stream; check the name")

// fits refuses a stream that would lose records or give old ones.
func fits(what string, c, want jetstream.StreamConfig) error {
	switch {
	case c.Storage != jetstream.FileStorage:
		return errors.New("it is in memory; delete it, or take another Config.Name")
	case c.Retention != want.Retention || len(c.Subjects) != 1 || c.Subjects[0] != want.Subjects[0] || perSubject(c) != perSubject(want):
		return fmt.Errorf("it was not made for %s; take another Config.Name", what)
	case shorter(c.MaxAge, want.MaxAge) || c.MaxMsgs > 0 || c.MaxBytes > 0 && c.Discard != want.Discard:
		return fmt.Errorf("its limits drop old messages; set max_age to %s or more (0 is for ever), max_msgs to 0, and discard to new", want.MaxAge)
	case c.AllowDirect:
		return errors.New("replicas that run behind may answer; set allow_direct to false")
	case want.AllowMsgTTL && !c.AllowMsgTTL:
		return errors.New("messages cannot have a time to live; set allow_msg_ttl to true (servers from 2.11)")
	case want.AllowRollup && !c.AllowRollup:
		return errors.New("a message cannot take the place of others; set allow_rollup_hdrs to true")
	case c.PersistMode != jetstream.DefaultPersistMode:
		return errors.New("it is not written at once; set persist_mode to default")
	}
	return nil
}

// shorter says whether one age is less than another, of which 0 is for ever.
func shorter(age, than time.Duration) bool { return age != 0 && (than == 0 || age < than) }

// perSubject is how many messages of a subject are kept, with 0 for all.
func perSubject(c jetstream.StreamConfig) int64 { return max(c.MaxMsgsPerSubject, 0) }

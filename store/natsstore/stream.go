package natsstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/nats-io/nats.go/jetstream"
)

// The metadata of a stream has the format of its messages.
const (
	formatKey = "mortise-format"
	format    = "operations-1"
)

// wanted is the stream of the operations. Reads go to its leader: others may lag.
func (s *Store) wanted() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: s.cfg.Stream, Subjects: s.names.subjects(), AllowRollup: true, AllowMsgTTL: true, AllowAtomicPublish: true,
	}
}

// openStream opens a stream, or makes it. It warns about one that is not replicated.
func (s *Store) openStream(ctx context.Context, want jetstream.StreamConfig) (stream jetstream.Stream, err error) {
	want.Storage, want.Replicas, want.Discard = jetstream.FileStorage, max(s.cfg.Replicas, 1), jetstream.DiscardNew
	want.Metadata = map[string]string{formatKey: format}
	err = s.ask(ctx, func(ctx context.Context) (err error) {
		stream, err = s.js.Stream(ctx, want.Name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			stream, err = s.makeStream(ctx, want)
		}
		if err != nil {
			return err
		}
		return s.fits(stream.CachedInfo().Config, want)
	})
	if err != nil {
		return nil, fmt.Errorf("natsstore: stream %q: %w", want.Name, err)
	}
	if n := stream.CachedInfo().Config.Replicas; n < 3 {
		s.cfg.warnings.WarnContext(ctx, "natsstore_not_replicated", "stream", want.Name, "replicas", n,
			"hint", "the loss of a server loses the stream; use a cluster of three and replicas 3")
	}
	return stream, nil
}

func (s *Store) makeStream(ctx context.Context, want jetstream.StreamConfig) (jetstream.Stream, error) {
	if s.cfg.Existing {
		return nil, fmt.Errorf("the servers have no such stream; check the name: %w", fs.ErrNotExist)
	}
	if name := s.nc.ConnectedClusterName(); name != "" && s.cfg.Replicas == 0 {
		return nil, fmt.Errorf("the servers are a cluster, %.80q, and Config.Replicas is not set: "+
			"use 3, so that the loss of a server loses nothing, or 1", name)
	}
	for n := firstPause; ; n++ {
		stream, err := s.js.CreateStream(ctx, want)
		api, refused := errors.AsType[*jetstream.APIError](err)
		switch {
		case errors.Is(err, jetstream.ErrStreamNameAlreadyInUse):
			return s.js.Stream(ctx, want.Name)
		case !refused || api.ErrorCode != notCreated || n > maxDoublings:
			return stream, err
		}
		if late := pause(ctx, n); late != nil {
			return nil, errors.Join(err, late)
		}
	}
}

// A server that still deletes the files of a stream of that name does not create another one. It is asked again, for half a second.
const (
	notCreated = jetstream.ErrorCode(10049)
	firstPause = 3
)

// fits refuses a stream that is not of this version, would lose messages or give old ones.
func (s *Store) fits(c, want jetstream.StreamConfig) error {
	slices.Sort(c.Subjects)
	slices.Sort(want.Subjects)
	switch {
	case c.Metadata[formatKey] != format:
		return errors.New("it was written by an older version of Mortise, or by something else: use another Config.Stream, or delete it")
	case c.Storage != jetstream.FileStorage:
		return errors.New("it is in memory: delete it, or use another Config.Stream")
	case !slices.Equal(c.Subjects, want.Subjects) || c.Retention != want.Retention:
		return errors.New("its subjects or its retention were changed: restore them, or use another Config.Stream")
	case want.AllowAtomicPublish && !c.AllowAtomicPublish:
		return errors.New("it has no atomic batches: set allow_atomic to true (nats-server 2.12 or later)")
	case want.AllowMsgTTL && !c.AllowMsgTTL || want.AllowRollup && !c.AllowRollup:
		return errors.New("set allow_msg_ttl and allow_rollup_hdrs to true")
	case want.MaxAge == 0 && c.MaxAge != 0 || c.MaxMsgs > 0 || c.MaxMsgsPerSubject > 0 || c.MaxBytes > 0 && c.Discard != want.Discard:
		return errors.New("its limits delete messages: set max_age, max_msgs and max_msgs_per_subject to 0, and discard to new")
	case c.AllowDirect:
		return errors.New("replicas that lag may answer: set allow_direct to false")
	case c.PersistMode != jetstream.DefaultPersistMode:
		return errors.New("it is not written at once: set persist_mode to default")
	case c.Replicas < s.cfg.Replicas:
		return fmt.Errorf("it has %d replicas, and Config.Replicas is %d: run nats stream edit %s --replicas %d",
			c.Replicas, s.cfg.Replicas, c.Name, s.cfg.Replicas)
	}
	return nil
}

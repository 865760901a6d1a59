package natsstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/internal/state"
)

// A process sweeps after it ran for a while, and then rarely.
const (
	sweepFirst = time.Hour
	sweepNext  = 24 * time.Hour
)

// settled is called when the state is that of the stream, with the time of the server.
func (s *Store) settled(now time.Time) {
	if s.synced = now; s.sweepAt.IsZero() {
		s.sweepAt = now.Add(sweepFirst)
	}
	if s.cfg.Existing || now.Before(s.sweepAt) {
		return
	}
	s.sweepAt = now.Add(sweepNext)
	s.sweep()
}

// sweep deletes what no thread refers to, such as what a process left that ended between a drop and the purges after it. Each message is
// written in one atomic batch with the operation that needs it, so what the state does not have is not on its way.
func (s *Store) sweep() {
	var places []state.Place
	logs, below, damaged := map[string][]string{}, uint64(0), false
	err := s.view(func(m *mirror) {
		below, places = m.seen, m.state.Places()
		for name, t := range m.threads {
			damaged = damaged || t.damaged
			if m.state.Has(name) {
				logs[name] = slices.Collect(maps.Keys(m.state.Thread(name).Logs))
			}
		}
	})
	if err != nil || damaged {
		return
	}
	s.work(func(ctx context.Context) {
		kept := map[string]bool{}
		for _, p := range places {
			kept[s.names.place(p)] = true
		}
		for thread, list := range logs {
			kept[s.names.pieces(thread)] = true
			for _, log := range list {
				kept[s.names.chunks(thread, log)] = true
			}
		}
		s.purgeOthers(ctx, kept, below)
	})
}

// purgeOthers deletes the messages before a sequence that have other subjects, except operations.
func (s *Store) purgeOthers(ctx context.Context, kept map[string]bool, below uint64) {
	var list []purge
	for _, pattern := range s.names.parts() {
		subjects, err := s.subjects(ctx, s.stream, pattern)
		if err != nil {
			s.cfg.Logger.DebugContext(ctx, "natsstore_not_swept", "stream", s.cfg.Stream, "error", redact(s.cfg.URL, err))
			return
		}
		for _, subject := range subjects {
			if !kept[subject] {
				list = append(list, purge{subject, below})
			}
		}
	}
	s.purge(ctx, list)
}

// subjects lists the subjects of a pattern that have messages.
func (s *Store) subjects(ctx context.Context, stream jetstream.Stream, pattern string) (list []string, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		info, err := stream.Info(ctx, jetstream.WithSubjectFilter(pattern))
		if err == nil {
			list = slices.Sorted(maps.Keys(info.State.Subjects))
		}
		return err
	})
	return list, err
}

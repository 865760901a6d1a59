package natsstore

import (
	"context"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// alarmTTL is longer than anybody keeps a cluster.
const alarmTTL = 50 * 365 * 24 * time.Hour

// setAlarm keeps a record in the stream that will be dropped one day. A server (as of 2.15) of a stream whose messages may have a time
// to live looks for those that are over in a goroutine of its own after every message, unless it knows when the next one is: so it
// shall know of one. The stream works as well without it, so a failure is only logged.
func (s *Store) setAlarm(ctx context.Context) {
	err := s.ask(ctx, func(ctx context.Context) error {
		_, err := s.put(ctx, "", s.names.alarm(), nil, jetstream.WithExpectLastSequencePerSubject(0), jetstream.WithMsgTTL(alarmTTL))
		return err
	})
	if err != nil && !overtaken(err) {
		s.cfg.Logger.WarnContext(ctx, "natsstore_alarm_not_set", "stream", s.cfg.Name, "error", err)
	}
}

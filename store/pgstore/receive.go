package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store/internal/wait"
)

const (
	// pollEvery is the pause between polls for notifications behind a pooler.
	pollEvery = 500 * time.Millisecond
	// oldest is a snapshot that sees nothing.
	oldest = "1:1:"
	// quiet is after which silence the listening connection is tested, and brief how long that may take.
	quiet = 30 * time.Second
	brief = 5 * time.Second
	// The pause before a lost connection is replaced grows from one to the other.
	shortestPause, longestPause = 10 * time.Millisecond, 2 * time.Second
)

func channel(schema string) string { return "mortise_" + schema }

// receive begins to receive notifications: from when it returns on.
func (s *Store) receive(ctx context.Context, pooler bool) error {
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	if pooler {
		since, err := s.poll(ctx, oldest)
		if err != nil && !s.cfg.Existing { // a program that only reads need not have the privilege
			stop()
			return err
		}
		s.work.Go(func() { s.polling(background, since) })
		s.work.Go(func() { s.notifying(background) })
		return nil
	}
	conn, err := s.listen(ctx)
	if err != nil {
		stop()
		return err
	}
	s.work.Go(func() { s.listening(background, conn) })
	s.work.Go(func() { s.notifying(background) })
	return nil
}

// listen makes a connection that listens.
func (s *Store) listen(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{channel(s.cfg.Schema)}.Sanitize()); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// listening wakes watches until ctx is done. When it has replaced a lost connection it wakes all.
func (s *Store) listening(ctx context.Context, conn *pgx.Conn) {
	for {
		err := s.notified(ctx, conn)
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), brief)
		_ = conn.Close(closing) // it is lost, or not needed any more
		cancel()
		for pause := shortestPause; ; pause = min(2*pause, longestPause) {
			if ctx.Err() != nil {
				return
			}
			s.cfg.Logger.WarnContext(ctx, "pgstore_not_listening", "error", err)
			if wait.For(ctx, jitter(pause)) != nil {
				return
			}
			if conn, err = s.listen(ctx); err == nil {
				break
			}
		}
		s.hub.NotifyAll()
	}
}

// notified receives notifications until the connection is lost.
func (s *Store) notified(ctx context.Context, conn *pgx.Conn) error {
	for {
		waiting, cancel := context.WithTimeout(ctx, quiet)
		n, err := conn.WaitForNotification(waiting)
		silent := waiting.Err() != nil
		cancel()
		switch {
		case err == nil:
			s.wake(n.Payload)
		case ctx.Err() != nil || !silent || conn.IsClosed():
			return err
		default:
			testing, cancel := context.WithTimeout(ctx, brief)
			err = conn.Ping(testing)
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

// polling polls for notifications until ctx is done. When polls fail it wakes all.
func (s *Store) polling(ctx context.Context, since string) {
	failing := false
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		var err error
		if since, err = s.poll(ctx, since); err != nil && ctx.Err() == nil {
			s.hub.NotifyAll()
			if !failing {
				s.cfg.Logger.WarnContext(ctx, "pgstore_not_polling", "error", err)
			}
		}
		failing = err != nil
	}
}

// poll wakes the watches of the batches since a snapshot, and returns a newer one, or with an error the same.
func (s *Store) poll(ctx context.Context, since string) (next string, err error) {
	var payloads []string
	err = s.write(ctx, "poll", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, s.sql.poll, since).Scan(&next, &payloads)
	})
	for _, p := range payloads {
		s.wake(p)
	}
	if err != nil {
		return since, err
	}
	return next, nil
}

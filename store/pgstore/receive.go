package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store/internal/wait"
)

const (
	// wakeEvery is the pause between two notifications of all watches behind a pooler.
	wakeEvery = 500 * time.Millisecond
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
		s.work.Go(func() { s.waking(background) })
		return nil
	}
	conn, err := s.listen(ctx)
	if err != nil {
		stop()
		return err
	}
	s.work.Go(func() { s.listening(background, conn) })
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

// waking wakes all watches again and again until ctx is done.
func (s *Store) waking(ctx context.Context) {
	for wait.For(ctx, wakeEvery) == nil {
		s.hub.NotifyAll()
	}
}

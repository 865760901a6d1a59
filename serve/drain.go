package serve

import (
	"context"
	"fmt"
	"time"
)

// Draining is closed when the server begins to shut down, by [Server.Drain] or by a client.
func (s *Server) Draining() <-chan struct{} { return s.draining }

func (s *Server) isDraining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drained
}

const lastPause = 5 * time.Millisecond

// Drain refuses new runs, takes nothing from the queue any more, ends the streams so that their
// clients connect elsewhere, and waits until this process executes nothing or ctx is done. The
// Runtime's Close hands over what is left.
func (s *Server) Drain(ctx context.Context) error {
	if err := s.stop(ctx); err != nil {
		return fmt.Errorf("serve: drain: %w", err)
	}
	for {
		list := s.box().Executing()
		if len(list) == 0 {
			return nil
		}
		s.changes.wait(ctx, "", lastPause) // an execution leaves a moment after its end
		for i := range list {
			if _, err := s.box().Await(ctx, list[i].ID); err != nil && ctx.Err() != nil {
				return fmt.Errorf("serve: drain: %d runs are under way: %w", len(s.box().Executing()), context.Cause(ctx))
			}
		}
	}
}

// stop begins to drain.
func (s *Server) stop(ctx context.Context) error {
	s.endStreams()
	return s.box().Stop(ctx) //nolint:wrapcheck // see the callers
}

// Close ends the streams and waits for them. It leaves the Runtime as it is, and is idempotent.
func (s *Server) Close() error {
	s.endStreams()
	s.open.Wait()
	return nil
}

func (s *Server) endStreams() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.drained {
		s.drained = true
		close(s.draining)
	}
	for _, end := range s.streams {
		end(errDraining)
	}
}

package pgtest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// Shared is the server of a package's tests, which does not outlive a crash of the machine and is faster for
// that. The zero value starts it when it is first asked for; close it in TestMain.
type Shared struct {
	once   sync.Once
	server *Server
	url    string
	err    error
}

// URL is the address to connect to. Without a PostgreSQL the test is skipped, or fails in CI.
func (s *Shared) URL(tb testing.TB) string {
	tb.Helper()
	s.once.Do(func() {
		if s.url = os.Getenv("MORTISE_TEST_POSTGRES"); s.url != "" {
			return
		}
		if s.server, s.err = New(context.WithoutCancel(tb.Context()), "fsync=off"); s.err == nil {
			s.url = s.server.URL()
		}
	})
	Need(tb, s.err)
	return s.url
}

// Server is the private server, or nil when another one is used. Ask for the URL first.
func (s *Shared) Server() *Server { return s.server }

// Close stops the server if there is one.
func (s *Shared) Close() error {
	if s.server == nil {
		return nil
	}
	return s.server.Close()
}

// Need ends a test when there is an error: as skipped if it is that there is no PostgreSQL here, and
// this is not CI.
func Need(tb testing.TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case errors.Is(err, ErrNone):
		testskip.Missing(tb, "%v", err)
	default:
		tb.Fatal(err)
	}
}

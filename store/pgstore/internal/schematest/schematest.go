package schematest

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// Server is that of a package's tests. Its zero value is ready.
type Server struct {
	shared  pgtest.Shared
	schemas atomic.Int64
}

// suite stops the server before goroutines are counted.
type suite struct {
	*testing.M

	server *Server
}

func (s suite) Run() int {
	code := s.M.Run()
	if err := s.server.shared.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// Main runs the tests, stops the server, and looks for goroutines that are left.
func (s *Server) Main(m *testing.M) { goleak.VerifyTestMain(suite{m, s}) }

// Name is the server and a new schema, as [Open] takes it.
func (s *Server) Name(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("%s\n%s_%d_%d", s.shared.URL(t), "test", os.Getpid(), s.schemas.Add(1))
}

// Open opens what [Server.Name] names. Whoever opened it closes it.
func Open(ctx context.Context, name string) (*pgstore.Store, error) {
	url, schema, _ := strings.Cut(name, "\n")
	return pgstore.Open(ctx, pgstore.Config{URL: url, Schema: schema, Conns: 4}) //nolint:wrapcheck // the test tells
}

// Open opens what Name names, and closes it with the test.
func (*Server) Open(t *testing.T, name string) *pgstore.Store {
	t.Helper()
	s, err := Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Exec runs a statement in the schema, "@." being that.
func Exec(t *testing.T, s *pgstore.Store, sql string, args ...any) {
	t.Helper()
	if err := s.Tables().Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

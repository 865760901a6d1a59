package pgtest_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dial reports whether the server takes connections.
func dial(t *testing.T, s *pgtest.Server) error {
	t.Helper()
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "unix", filepath.Join(u.Query().Get("host"), ".s.PGSQL.5432"))
	if err != nil {
		return err
	}
	return c.Close()
}

func TestServer(t *testing.T) {
	t.Parallel()
	s, err := pgtest.New(t.Context(), "fsync=off")
	pgtest.Need(t, err)
	pid := s.Pid()
	if err := dial(t, s); err != nil {
		t.Errorf("a new server: %v", err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := dial(t, s); err != nil || s.Pid() == pid {
		t.Errorf("a server that was started again, as %d after %d: %v", s.Pid(), pid, err)
	}
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(u.Query().Get("host")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

func TestServer_badSetting(t *testing.T) {
	t.Parallel()
	s, err := pgtest.New(t.Context(), "no_such_setting=1")
	if errors.Is(err, pgtest.ErrNone) {
		pgtest.Need(t, err)
	}
	if err == nil {
		t.Error("it started", s.Close())
	}
}

// asked notes how a test was ended.
type asked struct {
	testing.TB
	how string
}

func (a *asked) Helper()      {}
func (a *asked) Name() string { return "asked" }
func (a *asked) Skip(...any)  { a.how = "skipped" }
func (a *asked) Fatal(...any) { a.how = "failed" }

func (a *asked) Fatalf(string, ...any) { a.how = "failed" }

func TestNeed(t *testing.T) {
	t.Setenv("MORTISE_SKIPPED", "") // what is skipped here is no test
	for _, c := range []struct {
		ci   string
		err  error
		want string
	}{
		{"", nil, ""},
		{"true", nil, ""},
		{"", pgtest.ErrNone, "skipped"},
		{"true", pgtest.ErrNone, "failed"},
		{"", context.Canceled, "failed"},
	} {
		t.Setenv("CI", c.ci)
		a := &asked{TB: t}
		pgtest.Need(a, c.err)
		if a.how != c.want {
			t.Errorf("CI=%q, %v: %q, want %q", c.ci, c.err, a.how, c.want)
		}
	}
}

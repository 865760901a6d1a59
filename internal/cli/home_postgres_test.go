package cli_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/pgtest"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// postgres starts a server that asks for a password over TCP.
func postgres(t *testing.T) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Loopback(t.Context(), nil, nil, "fsync=off")
	pgtest.Need(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// unlocked is a URL of a server without the password.
func unlocked(t *testing.T, s *pgtest.Server, options url.Values) string {
	t.Helper()
	u, err := url.Parse(s.LoopbackURL(options))
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.User("mortise")
	return u.String()
}

// A schema of PostgreSQL keeps all of a run, as a file does. The password appears nowhere.
func TestStore_postgres(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	keepsAll(t, s.LoopbackURL(url.Values{"schema": {"runs"}}), s.Password(), "postgres://127.0.0.1:", "/postgres")
}

// The password can be in an option of the URL or in a password file, and two schemas know nothing of each other.
func TestStore_postgresPasswords(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	passwords := filepath.Join(t.TempDir(), "pgpass")
	if err := os.WriteFile(passwords, []byte("127.0.0.1:*:*:mortise:"+s.Password()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := config(t, compacting)
	for schema, store := range map[string]string{
		"one": unlocked(t, s, url.Values{"schema": {"one"}, "password": {s.Password()}}),
		"two": unlocked(t, s, url.Values{"schema": {"two"}, "passfile": {passwords}}),
	} {
		code, report, stderr := run(t, cfg, beginning(t, review(t), 30), "--store", store)
		if code != exit.OK || strings.Contains(report.RecordStore+stderr, s.Password()) {
			t.Errorf("schema %s: exit code %d, records in %q: %s", schema, code, report.RecordStore, stderr)
		}
		if out := must(t, "compact", "show", store); strings.Contains(out, s.Password()) {
			t.Errorf("shown is %s", out)
		}
		if n := len(show(t, store).Threads); n != 1 {
			t.Errorf("schema %s has %d threads", schema, n)
		}
	}
}

// The password can be in the environment, as for every client of PostgreSQL.
func TestStore_postgresEnvironment(t *testing.T) {
	s := postgres(t)
	store, session, cfg := unlocked(t, s, nil), beginning(t, review(t), 30), config(t, compacting)
	code, _, stderr := mortise(t.Context(), "", "run", "--config", cfg, "--store", store, session)
	if code == exit.OK || !strings.Contains(stderr, "password") {
		t.Fatalf("exit code %d without a password: %s", code, stderr)
	}
	t.Setenv("PGPASSWORD", "not "+s.Password())
	code, _, stderr = mortise(t.Context(), "", "run", "--config", cfg, "--store", store, session)
	if code == exit.OK || !strings.Contains(stderr, "password authentication failed") || strings.Contains(stderr, s.Password()) {
		t.Fatalf("exit code %d with another password: %s", code, stderr)
	}
	t.Setenv("PGPASSWORD", s.Password())
	if code, _, stderr := run(t, cfg, session, "--store", store); code != exit.OK {
		t.Fatalf("exit code %d with the password: %s", code, stderr)
	}
}

// What the URL says of TLS holds: a server without it is refused.
func TestStore_postgresTLS(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	store := s.LoopbackURL(url.Values{"sslmode": {"verify-full"}})
	code, _, stderr := mortise(t.Context(), "", "run", "--config", config(t, compacting), "--store", store, beginning(t, review(t), 30))
	if code == exit.OK || !strings.Contains(stderr, "server refused TLS connection") || strings.Contains(stderr, s.Password()) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Notifications of tasks are in the store, which processes share.
func TestStore_postgresInbox(t *testing.T) {
	t.Parallel()
	store := postgres(t).LoopbackURL(nil)
	tasks := filepath.Join(t.TempDir(), "tasks")
	cfg := config(t, compacting+"tasks: {dir: "+tasks+"}\nstore: "+store+"\n")
	if code, _, stderr := run(t, cfg, beginning(t, review(t), 30)); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(tasks, "tasks.db")); err == nil {
		t.Error("there is an inbox in the folder, too")
	}
	mailbox, err := pgstore.Open(t.Context(), pgstore.Config{URL: store})
	if err != nil {
		t.Fatal(err)
	}
	defer mailbox.Close(context.WithoutCancel(t.Context()))
	o, err := inbox.New(t.Context(), inbox.Config{Store: mailbox, Shared: true})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close(context.WithoutCancel(t.Context()))
	if err := o.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCustom}); err != nil {
		t.Error(err)
	}
	if code, _, stderr := run(t, cfg, beginning(t, review(t), 30)); code != exit.OK {
		t.Errorf("exit code %d while another process uses the store: %s", code, stderr)
	}
}

package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// refuse opens a store that must not open.
func refuse(t *testing.T, c pgstore.Config, want ...string) error {
	t.Helper()
	s, err := pgstore.Open(t.Context(), c)
	if err == nil {
		_ = s.Close(t.Context())
		t.Fatalf("opened, want %q", want)
	}
	for _, text := range append([]string{"pgstore: "}, want...) {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %q", err, text)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has several lines: %v", err)
	}
	for _, part := range []string{"s3cr", "et@", "n0t-the"} {
		if strings.Contains(err.Error(), part) {
			t.Errorf("the error has a part of the password: %v", err)
		}
	}
	return err
}

func TestOpen_config(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  pgstore.Config
		want string
	}{
		"no URL":        {pgstore.Config{}, "Config.URL is empty"},
		"schema":        {pgstore.Config{URL: "postgres://x", Schema: `a"; DROP`}, "Config.Schema"},
		"connections":   {pgstore.Config{URL: "postgres://x", Conns: -1}, "Config.Conns"},
		"timeout":       {pgstore.Config{URL: "postgres://x", StatementTimeout: 1}, "Config.StatementTimeout"},
		"slash":         {pgstore.Config{URL: "postgres://me:s3cr/et@host/db"}, "Config.URL"},
		"broken escape": {pgstore.Config{URL: "postgres://me:s3cr%zzet@host/db"}, "Config.URL"},
		"keyword":       {pgstore.Config{URL: "host=h port=no password='s3cret'"}, "Config.URL"},
		"unclosed":      {pgstore.Config{URL: "password='s3cret"}, "Config.URL"},
		"no socket":     {pgstore.Config{URL: "postgres://me:s3cret@/db?host=/nowhere"}, "open schema mortise"},
		"no port":       {pgstore.Config{URL: "postgres://me:s3cret@127.0.0.1:1,127.0.0.1:2/db"}, "refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_ = refuse(t, c.cfg, c.want)
		})
	}
}

func TestOpen_wrongPassword(t *testing.T) {
	t.Parallel()
	c := config(t)
	if shared.Server() == nil {
		testskip.Skip(t, "the server is not ours, and may ask for no password")
	}
	c.URL = withUser(t, c.URL, "mortise", "n0t-the-password")
	_ = refuse(t, c, "password authentication failed")
}

func withUser(t *testing.T, address, name, password string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(name, password)
	return u.String()
}

func TestOpen_atOnce(t *testing.T) {
	t.Parallel()
	c := config(t)
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := pgstore.Open(t.Context(), c)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestOpen_existing(t *testing.T) {
	t.Parallel()
	c := config(t)
	c.Existing = true
	if err := refuse(t, c, "open schema "+c.Schema+": the database has no such schema; check the name"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	sql(t, c, `CREATE SCHEMA `+c.Schema)
	if err := refuse(t, c, "open schema "+c.Schema+": it has no tables of Mortise; check the name"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	c.Existing = false
	apply(t, open(t, c), "t")
	c.Existing = true
	s := open(t, c)
	if out, err := s.Read(t.Context(), "t", store.Query{}); err != nil || out.Revision == 0 {
		t.Errorf("got %+v, %v", out, err)
	}
	sql(t, c, `DELETE FROM `+c.Schema+`.schema_version WHERE version = 2`)
	_ = refuse(t, c, "its tables have version 1, and this program has 2; open it with a program that writes first")
}

func TestOpen_otherVersions(t *testing.T) {
	t.Parallel()
	c := config(t)
	open(t, c)
	sql(t, c, `INSERT INTO `+c.Schema+`.schema_version (version) VALUES (99)`)
	_ = refuse(t, c, "open schema "+c.Schema+": its tables have version 99", "use a newer version of Mortise")
	for _, table := range []string{"migration", "outbox_migration"} {
		c := config(t)
		sql(t, c, `CREATE SCHEMA `+c.Schema+`; CREATE TABLE `+c.Schema+`.`+table+` (version bigint)`)
		_ = refuse(t, c, "open schema "+c.Schema+": an older version of Mortise wrote it", "use another schema, or drop it")
		c.Existing = true
		_ = refuse(t, c, "open schema "+c.Schema+": an older version of Mortise wrote it")
	}
}

// A migration that fails leaves nothing behind.
func TestOpen_wholeMigration(t *testing.T) {
	t.Parallel()
	c := config(t)
	sql(t, c, `CREATE SCHEMA `+c.Schema+`; CREATE TABLE `+c.Schema+`.event (mine int)`)
	_ = refuse(t, c, "schema version 1", "already exists")
	sql(t, c, `DROP TABLE `+c.Schema+`.event`)
	apply(t, open(t, c), "t")
}

// TestOpen_privileges holds that a role needs no more than the documentation of the package lists, and gets a hint if it has less.
func TestOpen_privileges(t *testing.T) {
	t.Parallel()
	owner, admin := config(t), config(t)
	role := "role_" + owner.Schema
	sql(t, admin, `CREATE ROLE `+role+` LOGIN PASSWORD 'p'`)
	t.Cleanup(func() { sql(t, admin, `DROP OWNED BY `+role+` CASCADE; DROP ROLE `+role) })
	c := owner
	c.URL = withUser(t, c.URL, role, "p")
	_ = refuse(t, c, "permission denied for database", "CREATE on the schema, or on the database")
	open(t, owner)
	_ = refuse(t, c, "permission denied for schema", "grant the role USAGE on schema "+c.Schema)
	sql(t, owner, `GRANT USAGE ON SCHEMA `+c.Schema+` TO `+role)
	_ = refuse(t, c, "permission denied for table", "grant the role USAGE on schema "+c.Schema)
	sql(t, owner, `GRANT SELECT ON ALL TABLES IN SCHEMA `+c.Schema+` TO `+role)
	s := open(t, c)
	if _, err := s.Read(t.Context(), "t", store.Query{}); err != nil {
		t.Error(err)
	}
	if _, err := s.Apply(t.Context(), put("t", 0)); err == nil || !strings.Contains(err.Error(), "INSERT, UPDATE and DELETE on its tables") {
		t.Errorf("got %v", err)
	}
	sql(t, owner, `GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA `+c.Schema+` TO `+role)
	sql(t, owner, `GRANT USAGE ON ALL SEQUENCES IN SCHEMA `+c.Schema+` TO `+role)
	apply(t, s, "t")
}

// The shared server does not flush. The log has that, and nothing of the URL.
func TestOpen_warns(t *testing.T) {
	t.Parallel()
	c := config(t)
	if shared.Server() == nil {
		testskip.Skip(t, "the server is not ours")
	}
	var log bytes.Buffer
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if err := open(t, c).Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "pgstore_server_not_durable fsync=off") || strings.Contains(log.String(), shared.Server().Password()) {
		t.Errorf("log: %s", log.String())
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := open(t, c)
	ctx, cancel := context.WithCancel(t.Context())
	w, err := s.Watch(ctx, "topic")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.Read(t.Context(), "t", store.Query{}); err == nil || !strings.HasPrefix(err.Error(), "pgstore: ") {
		t.Errorf("a closed store answers: %v", err)
	}
	if _, err := s.Apply(t.Context(), put("t", 0)); err == nil {
		t.Error("a closed store answers")
	}
	cancel()
	for range w {
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	now, err := open(t, config(t)).Time(t.Context())
	if d := time.Since(now).Abs(); err != nil || d > time.Minute {
		t.Errorf("%v off: %v", d, err)
	}
}

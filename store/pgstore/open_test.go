package pgstore_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

func TestOpen_config(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg  pgstore.Config
		want string
	}{
		"no URL":          {pgstore.Config{}, "Config.URL is empty"},
		"schema":          {pgstore.Config{URL: "postgres://x", Schema: `a"; DROP`}, "Config.Schema"},
		"connections":     {pgstore.Config{URL: "postgres://x", Conns: -1}, "Config.Conns"},
		"timeout":         {pgstore.Config{URL: "postgres://x", StatementTimeout: 1}, "Config.StatementTimeout"},
		"slash":           {pgstore.Config{URL: "postgres://me:s3cr/et@host/db"}, "Config.URL"},
		"broken escape":   {pgstore.Config{URL: "postgres://me:s3cr%zzet@host/db"}, "Config.URL"},
		"keyword":         {pgstore.Config{URL: "host=h port=no password='s3cret'"}, "Config.URL"},
		"unclosed":        {pgstore.Config{URL: "password='s3cret"}, "Config.URL"},
		"nobody's socket": {pgstore.Config{URL: "postgres://me:s3cret@/db?host=/nowhere"}, "pgstore: open schema mortise"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := pgstore.Open(t.Context(), c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("opened: %v; want %q", err, c.want)
			}
			if strings.Contains(err.Error(), "s3cr") || strings.Contains(err.Error(), "et@") {
				t.Errorf("the error has a part of the password: %v", err)
			}
		})
	}
}

func TestOpen_wrongPassword(t *testing.T) {
	t.Parallel()
	u, err := url.Parse(shared.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	if shared.Server() == nil {
		testskip.Skip(t, "the server is not ours, and may ask for no password")
	}
	u.User = url.UserPassword(u.User.Username(), "n0t-the-password")
	_, err = pgstore.Open(t.Context(), pgstore.Config{URL: u.String()})
	if err == nil || !strings.Contains(err.Error(), "password authentication failed") {
		t.Fatalf("opened: %v", err)
	}
	if strings.Contains(err.Error(), "n0t-the") {
		t.Errorf("the error has the password: %v", err)
	}
}

func TestOpen_twiceAtOnce(t *testing.T) {
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
	var versions int
	if err := connect(t, c).QueryRow(t.Context(), `SELECT count(*) FROM `+c.Schema+`.migration`).Scan(&versions); err != nil || versions != 2 {
		t.Errorf("%d versions were applied: %v", versions, err)
	}
}

func TestOpen_newerSchema(t *testing.T) {
	t.Parallel()
	c := config(t)
	open(t, c)
	exec(t, c, `INSERT INTO `+c.Schema+`.migration (version) VALUES (99)`)
	_, err := pgstore.Open(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "run the newer program") {
		t.Errorf("an older program opened a newer schema: %v", err)
	}
}

// A migration that fails leaves nothing behind.
func TestOpen_wholeMigration(t *testing.T) {
	t.Parallel()
	c := config(t)
	exec(t, c, `CREATE SCHEMA `+c.Schema)
	exec(t, c, `CREATE TABLE `+c.Schema+`.message (mine int)`)
	if _, err := pgstore.Open(t.Context(), c); err == nil || !strings.Contains(err.Error(), "migration 0001.sql") {
		t.Fatalf("opened over a table of somebody else: %v", err)
	}
	var tables int
	if err := connect(t, c).QueryRow(t.Context(), `SELECT count(*) FROM pg_tables WHERE schemaname = $1`, c.Schema).Scan(&tables); err != nil || tables != 1 {
		t.Errorf("%d tables are left: %v", tables, err)
	}
	exec(t, c, `DROP TABLE `+c.Schema+`.message`)
	open(t, c)
}

// A role that may not make schemas uses one that was made for it, and two schemas know nothing of
// each other.
func TestOpen_schemas(t *testing.T) {
	t.Parallel()
	a, b := config(t), config(t)
	admin := a
	exec(t, a, `CREATE ROLE role_`+a.Schema+` LOGIN PASSWORD 'p'`)
	exec(t, a, `CREATE SCHEMA `+a.Schema+` AUTHORIZATION role_`+a.Schema)
	t.Cleanup(func() {
		exec(t, admin, `DROP OWNED BY role_`+a.Schema+` CASCADE`)
		exec(t, admin, `DROP ROLE role_`+a.Schema)
	})
	u, err := url.Parse(a.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("role_"+a.Schema, "p")
	a.URL = u.String()
	first, second := newQueue(t, open(t, a)), newQueue(t, open(t, b))
	if err := cycle(t.Context(), first, "d1"); err != nil {
		t.Fatal(err)
	}
	if _, found, err := second.Dispatch(t.Context(), "d1"); found || err != nil {
		t.Errorf("found in another schema: %v, %v", found, err)
	}
	b.URL, b.Schema = a.URL, b.Schema+"_other"
	if _, err := pgstore.Open(t.Context(), b); err == nil || !strings.Contains(err.Error(), "let the role make schemas") {
		t.Errorf("opened without a right: %v", err)
	}
}

// The shared server does not flush. That is told, and nothing of the URL is.
func TestOpen_warns(t *testing.T) {
	t.Parallel()
	c := config(t)
	if shared.Server() == nil {
		testskip.Skip(t, "the server is not ours")
	}
	var log bytes.Buffer
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	s := open(t, c)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "pgstore_server_not_durable setting=fsync") {
		t.Errorf("log: %s", log.String())
	}
	if strings.Contains(log.String(), shared.Server().Password()) {
		t.Error("the log has the password")
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := open(t, c)
	stop, err := s.Listen(t.Context(), mailbox.Target{Thread: "t"}, func(context.Context, mailbox.Command) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	stop()
	if _, err := s.Load(t.Context(), "t", mailbox.Need{}); err == nil {
		t.Error("a closed store answers")
	}
	other := open(t, c)
	if ok, err := other.Deliver(t.Context(), mailbox.Target{Thread: "t"}, mailbox.Command{Kind: mailbox.CommandCancel}); ok || err != nil {
		t.Errorf("delivered to a store that is closed: %v, %v", ok, err)
	}
}

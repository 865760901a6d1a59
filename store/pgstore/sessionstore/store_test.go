package sessionstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/session/sessiontest"
	"github.com/mortise-dev/mortise/store/pgstore/internal/schematest"
	"github.com/mortise-dev/mortise/store/pgstore/sessionstore"
)

var server schematest.Server

func TestMain(m *testing.M) {
	sessiontest.CrashChild(openName)
	server.Main(m)
}

func openName(ctx context.Context, name string) (session.Store, func() error, error) {
	store, err := schematest.Open(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	s, err := sessionstore.New(ctx, store)
	return s, func() error { return store.Close(ctx) }, err
}

func open(t *testing.T, name string) *sessionstore.Store {
	t.Helper()
	s, err := sessionstore.New(t.Context(), server.Open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	sessiontest.TestStore(t, func(t *testing.T) (session.Store, func() session.Store) {
		t.Helper()
		name := server.Name(t)
		return open(t, name), func() session.Store { return open(t, name) }
	})
}

func TestStore_killed(t *testing.T) {
	t.Parallel()
	sessiontest.TestCrash(t, openName, server.Name(t))
}

// What is in the tables and makes no sense is told by thread and line, and never guessed at.
func TestBrokenRows(t *testing.T) {
	t.Parallel()
	name := server.Name(t)
	s, raw := open(t, name), server.Open(t, name)
	_, err := s.Swap("t", 0, compaction.State{Total: 1})
	message := func(id string) abi.Message { return abi.Message{ID: id, Role: abi.RoleUser} }
	if err := errors.Join(err, s.Append("t", message("a"), message("b")), s.Record(compaction.Event{Thread: "t"})); err != nil {
		t.Fatal(err)
	}
	for want, data := range map[string]string{
		"line 2: holds no message":                         "{}",
		"line 2: invalid character":                        "what",
		`line 2: replaces "z", which does not come before`: `{"replace":{"id":"z"}}`,
	} {
		schematest.Exec(t, raw, "UPDATE @.session_line SET data = $1 WHERE n = 2", []byte(data))
		if log, err := s.Log("t"); err == nil || log != nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `thread "t"`) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	schematest.Exec(t, raw, "UPDATE @.session_state SET data = $1", []byte("{"))
	if _, rev, err := s.Load("t"); err == nil || rev != 0 || !strings.Contains(err.Error(), "state 1: unexpected end") {
		t.Errorf("got %v", err)
	}
	schematest.Exec(t, raw, "UPDATE @.session_event SET data = $1", []byte("[]"))
	if all, err := s.Events("t"); err == nil || all != nil || !strings.Contains(err.Error(), "event 1: ") {
		t.Errorf("got %v", err)
	}
	schematest.Exec(t, raw, "INSERT INTO @.session_migration (version) VALUES (7)")
	if _, err := sessionstore.New(t.Context(), raw); err == nil || !strings.Contains(err.Error(), "it has version 7 and this program knows versions up to 1") {
		t.Errorf("newer tables: %v", err)
	}
}

package cli_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/nats-io/nats.go"
	natsjet "github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/internal/exit"
)

// readers are the commands that make nothing of a store.
func readers(store string) [][]string {
	return [][]string{{"compact", "show", store}, {"compact", "undo", store}, {"explain", "--store", store}, {"explain", "nosuchrun", "--store", store}}
}

// notThere holds that readers of a store that is not there say so, name what is missing, and leave all as it was.
func notThere(t *testing.T, store, names string, all func() []string) {
	t.Helper()
	before := all()
	for _, args := range readers(store) {
		code, stdout, stderr := mortise(t.Context(), "", args...)
		if code == exit.OK || stdout != "" || !strings.Contains(stderr, names) || !strings.Contains(stderr, "mortise run") || strings.Contains(stderr, secret) {
			t.Errorf("%v: exit code %d, %q, %s", args[:2], code, stdout, stderr)
		}
		if after := all(); !slices.Equal(after, before) {
			t.Fatalf("%v: there were %q, and now %q", args[:2], before, after)
		}
	}
}

// TestStoreIsNotMade_postgres: a schema that is not there is not made.
func TestStoreIsNotMade_postgres(t *testing.T) {
	t.Parallel()
	s := postgres(t)
	all := func() (names []string) {
		c, err := pgx.Connect(t.Context(), s.LoopbackURL(nil))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close(t.Context())
		rows, err := c.Query(t.Context(), `SELECT n.nspname || '.' || coalesce(c.relname, '') FROM pg_namespace n
			LEFT JOIN pg_class c ON c.relnamespace = n.oid WHERE n.nspname !~ '^(pg_|information)' ORDER BY 1`)
		if err != nil {
			t.Fatal(err)
		}
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	notThere(t, s.LoopbackURL(url.Values{"schema": {"nothere"}}), `"nothere"`, all)
	notThere(t, s.LoopbackURL(url.Values{"schema": {"public"}}), `"public"`, all)
	if code, _, stderr := run(t, config(t, ""), write(t, "s.jsonl", []byte(chat)), "--store", s.LoopbackURL(url.Values{"schema": {"runs"}}), "--no-record"); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	withoutRecords(t, s.LoopbackURL(url.Values{"schema": {"runs"}}), `schema "runs"`, all)
}

// withoutRecords holds that a store to which no run has written records has none, and gets no place for them.
func withoutRecords(t *testing.T, store, names string, all func() []string) {
	t.Helper()
	before := all()
	must(t, "compact", "show", store)
	if out := must(t, "explain", "--store", store); strings.Count(out, "\n") != 1 {
		t.Errorf("the records are %s", out)
	}
	if code, _, stderr := mortise(t.Context(), "", "explain", "nosuchrun", "--store", store); code != exit.Usage || !strings.Contains(stderr, "there are none in") || !strings.Contains(stderr, names) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if after := all(); !slices.Equal(after, before) {
		t.Errorf("there were %q, and now %q", before, after)
	}
}

// TestStoreIsNotMade_nats: streams that are not there are not made, and one that is there has the copies that are asked for, or is refused.
func TestStoreIsNotMade_nats(t *testing.T) {
	t.Parallel()
	store := jetstream(t)
	server := strings.TrimSuffix(store, "/runs")
	nc, err := nats.Connect(server)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := natsjet.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	all := func() (names []string) {
		for info := range js.ListStreams(t.Context()).Info() {
			names = append(names, info.Config.Name)
		}
		slices.Sort(names)
		return names
	}
	notThere(t, server+"/none", "/none", all)
	if code, _, stderr := run(t, config(t, ""), write(t, "s.jsonl", []byte(chat)), "--store", store, "--no-record"); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, args := range append(readers(store+"?replicas=3"), []string{"run", "-q", "-c", config(t, ""), "--store", store + "?replicas=3", review(t)}) {
		code, _, stderr := mortise(t.Context(), "", args...)
		if code == exit.OK || !strings.Contains(stderr, `stream "runs": it has 1 replicas, and replicas is 3`) || !strings.Contains(stderr, "nats stream edit runs --replicas 3") {
			t.Errorf("%v: exit code %d: %s", args[:2], code, stderr)
		}
	}
	withoutRecords(t, store+"?replicas=1", "/runs", all)
}

// TestStoreIsNotMade_file: a file that is there gets no tables.
func TestStoreIsNotMade_file(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	if code, _, stderr := run(t, config(t, ""), write(t, "s.jsonl", []byte(chat)), "--store", path, "--no-record"); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	withoutRecords(t, path, path, func() []string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return []string{string(text)}
	})
}

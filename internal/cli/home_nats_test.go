package cli_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/store/natsstore"
)

// secret is the password of the server of a test.
const secret = "hunter2"

// jetstream starts a server and returns the URL of a store on it.
func jetstream(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoSigs: true, NoLog: true,
		Username: "mortise", Password: secret, JetStreamMaxStore: 1 << 30, JetStreamMaxMemory: 1 << 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("the server did not start")
	}
	return "nats://mortise:" + secret + "@" + s.Addr().String() + "/runs"
}

// Streams of NATS keep all of a run, as a file does. The password appears nowhere.
func TestStore_nats(t *testing.T) {
	t.Parallel()
	keepsAll(t, jetstream(t), secret, "nats://127.0.0.1:", "/runs")
}

// keepsAll holds that a store keeps all of a run, and that its password appears nowhere. It is shown as what has that beginning and end.
func keepsAll(t *testing.T, url, secret, begins, ends string) {
	t.Helper()
	cfg := config(t, compacting)
	code, first, stderr := run(t, cfg, beginning(t, review(t), 101), "--store", url)
	if code != exit.OK || !strings.HasPrefix(first.RecordStore, begins) || !strings.HasSuffix(first.RecordStore, ends) {
		t.Fatalf("exit code %d, records in %q: %s", code, first.RecordStore, stderr)
	}
	if strings.Contains(stderr, secret) {
		t.Errorf("the log says %s", stderr)
	}
	v := show(t, url).Threads[0]
	n := len(v.State.Markers)
	if n < 1 || n != first.Threads[0].Compactions || v.Messages != first.Threads[0].Messages || v.ViewMessages >= v.Messages {
		t.Fatalf("shown is %+v, the report has %+v", v, first.Threads)
	}
	view := must(t, "compact", "show", url, "--view")
	if out := must(t, "compact", "undo", url, "--thread", v.ID); !strings.Contains(out, leftAfter(n-1)) {
		t.Errorf("undo says %s", out)
	}
	if must(t, "compact", "show", url, "--view") == view || len(show(t, url).Threads[0].State.Markers) != n-1 {
		t.Error("nothing was undone")
	}
	explainedIn(t, url, first)
	if out := must(t, "explain", "--store", url); strings.Contains(out, secret) {
		t.Errorf("explain says %s", out)
	}
	code, second, stderr := run(t, cfg, beginning(t, review(t), 120), "--store", url)
	if code != exit.OK || !second.Threads[0].Complete || second.Runs.Steps == 0 || show(t, url).Threads[0].Messages != second.Session.Messages {
		t.Fatalf("exit code %d, %+v, %d steps: %s", code, second.Threads, second.Runs.Steps, stderr)
	}
	explainedIn(t, url, second)
}

// Notifications of tasks are in the store, which processes share.
func TestStore_natsInbox(t *testing.T) {
	t.Parallel()
	url := jetstream(t)
	tasks := filepath.Join(t.TempDir(), "tasks")
	cfg := config(t, compacting+"tasks: {dir: "+tasks+"}\nstore: "+url+"\n")
	if code, _, stderr := run(t, cfg, beginning(t, review(t), 30)); code != exit.OK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	if _, err := os.Stat(filepath.Join(tasks, "tasks.db")); err == nil {
		t.Error("there is an inbox in the folder, too")
	}
	i := strings.LastIndex(url, "/")
	s, err := natsstore.Open(t.Context(), natsstore.Config{URL: url[:i], Stream: url[i+1:]})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(t.Context()))
	o, err := inbox.New(t.Context(), inbox.Config{Store: s, Shared: true})
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

// A URL that cannot be used is refused, and the refusal lists valid ones, without the password.
func TestStore_refusedURLs(t *testing.T) {
	t.Parallel()
	session, cfg := beginning(t, review(t), 10), config(t, compacting)
	for url, want := range map[string]string{
		"postgres://me:" + secret + "@127.0.0.1:1/db":            "failed to connect to `user=me database=db`",
		"postgresql://127.0.0.1:1/db?password=" + secret:         "failed to connect to `user=",
		"postgres://me@127.0.0.1:1/db?password=a@" + secret:      "failed to connect to `user=me database=db`",
		"postgres://me:" + secret + "@127.0.0.1:1/db?schema=A":   "use lower-case letters, digits and underscores",
		"postgres://me:" + secret + "@h/db?schema=a&schema=b":    "2 schemas are named; name one",
		"postgres://me:" + secret + "%@h/db":                     "special characters of a password are written as %XX in a URL",
		"postgres://me:" + secret + "@h/db?sslmode=%%" + secret:  "what is behind the ? is not of the form",
		"postgres://me:" + secret + "@h/db?sslmode=" + "perhaps": "not a PostgreSQL URL or keyword string",
		"redis://me:" + secret + "@localhost":                    `"redis" is no kind of store; name a SQLite file, nats://HOST:4222/STREAM, or postgres://`,
		"nats://me:" + secret + "@127.0.0.1:1/x?replicas=2":      "replicas is 2; it can be 1, 3 or 5",
		"nats://me:" + secret + "@127.0.0.1:1/x?replicas=a":      `replicas="a": it can be 1, 3 or 5`,
		"nats://me:" + secret + "@127.0.0.1:1/x?copies=3":        `there is no option "copies"; replicas is one`,
		"nats://me:" + secret + "@127.0.0.1:1/a.b":               "use letters, digits, - and _",
		"nats://me:" + secret + "@127.0.0.1:1/x":                 "connect: nats: no servers available",
		"nats:///x":                                              "no server is named, as in nats://HOST:4222/STREAM",
	} {
		for _, words := range [][]string{{"run", "--config", cfg, "--store", url, session}, {"compact", "show", url}, {"compact", "undo", url}, {"explain", "--store", url}} {
			code, stdout, stderr := mortise(t.Context(), "", words...)
			if text := stdout + stderr; code == exit.OK || !strings.Contains(text, want) || strings.Contains(text, secret) {
				t.Errorf("%s: exit code %d, %s; want %s", slices.DeleteFunc(words, func(w string) bool { return w == url }), code, text, want)
			}
		}
	}
}

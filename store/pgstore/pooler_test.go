//go:build unix

package pgstore_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/storetest"
)

const poolerConfig = `[databases]
postgres = host=%s port=%s user=%s password=%s
[pgbouncer]
listen_addr =
unix_socket_dir = %s
listen_port = 6432
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
%s
`

// pooler starts a PgBouncer before a server and returns its URL.
func pooler(t *testing.T, settings string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			testskip.Missing(t, "no pgbouncer (Debian: apt-get install pgbouncer)")
		}
	}
	u, err := url.Parse(shared.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "pooler") //nolint:usetesting // the name of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	password, _ := u.User.Password()
	file := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(poolerConfig, u.Query().Get("host"), u.Query().Get("port"), u.User.Username(), password, dir, settings)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"-q", file}
	if os.Geteuid() == 0 { // it refuses to run as root
		args = append([]string{"-u", give(t, u.Query().Get("host"), dir, file)}, args...)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(20 * time.Second); ; {
		c, err := new(net.Dialer).DialContext(t.Context(), "unix", filepath.Join(dir, ".s.PGSQL.6432"))
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatalf("pgbouncer does not listen: %v", err)
		}
		<-time.After(10 * time.Millisecond)
	}
	return "postgres://mortise@/postgres?" + url.Values{"host": {dir}, "port": {"6432"}}.Encode()
}

// give gives files to the owner of a folder and returns its name.
func give(t *testing.T, like string, paths ...string) string {
	t.Helper()
	info, err := os.Stat(like)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		testskip.Missing(t, "files have no owner here")
	}
	for _, p := range paths {
		if err := os.Chown(p, int(stat.Uid), int(stat.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	owner, err := user.LookupId(fmt.Sprint(stat.Uid))
	if err != nil {
		t.Fatal(err)
	}
	return owner.Username
}

// TestPooler holds the contract behind a pooler that refuses settings of sessions.
func TestPooler(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	address := pooler(t, "")
	both := func(t *testing.T) (one, other store.Store) {
		t.Helper()
		c := config(t)
		c.URL = address
		return open(t, c), open(t, c)
	}
	t.Run("store", func(t *testing.T) {
		t.Parallel()
		storetest.TestStore(t, both)
	})
	t.Run("events", func(t *testing.T) {
		t.Parallel()
		storetest.TestEvents(t, both)
	})
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		one, other := both(t)
		storetest.TestModel(t, func(*testing.T) (_, _ store.Store) { return one, other }, 10)
	})
}

// TestPooler_mixed holds that a process behind a pooler, which ignores settings of sessions, and one without work together.
func TestPooler_mixed(t *testing.T) {
	t.Parallel()
	c := config(t)
	direct := open(t, c)
	c.URL = pooler(t, "ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout,default_transaction_isolation")
	stores := []*pgstore.Store{direct, open(t, c)}
	var watches []<-chan struct{}
	for _, s := range stores {
		w, err := s.Watch(t.Context(), "topic")
		if err != nil {
			t.Fatal(err)
		}
		watches = append(watches, w)
	}
	for i, s := range stores {
		b := put("t", store.AnyRevision, store.Cell{Kind: "a", Key: fmt.Sprint(i)})
		b.Notify = []string{"topic"}
		if _, err := s.Apply(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		for n, w := range watches {
			select {
			case <-w:
			case <-time.After(20 * time.Second):
				t.Errorf("watch %d received nothing of store %d", n, i)
			}
		}
	}
}

package pgstore_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// relay passes connections on to a server and counts its round trips: the messages after which the client waits.
type relay struct {
	listener net.Listener
	server   string
	trips    atomic.Int64
	// hold keeps back what clients send while a test has the lock.
	hold sync.RWMutex
	work sync.WaitGroup
}

// newRelay returns a relay and the URL of it.
func newRelay(t *testing.T, address string) (*relay, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	q := u.Query()
	r := &relay{server: filepath.Join(q.Get("host"), ".s.PGSQL."+q.Get("port"))}
	if r.listener, err = new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, ".s.PGSQL.5432")); err != nil {
		t.Fatal(err)
	}
	q.Set("host", dir)
	q.Set("port", "5432")
	u.RawQuery = q.Encode()
	r.work.Go(r.accept)
	t.Cleanup(func() {
		_ = r.listener.Close()
		r.work.Wait()
	})
	return r, u.String()
}

func (r *relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("unix", r.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		r.work.Go(func() {
			_, _ = io.Copy(client, server)
			_ = client.Close()
		})
		r.work.Go(func() {
			_ = r.count(server, client)
			_ = server.Close()
		})
	}
}

// count copies messages of a client: each has its type, but the first one, and its length.
func (r *relay) count(to io.Writer, from io.Reader) error {
	for start := 0; ; start = 1 {
		head := make([]byte, start+4)
		if _, err := io.ReadFull(from, head); err != nil {
			return err
		}
		if start == 1 && (head[0] == 'S' || head[0] == 'Q') {
			r.trips.Add(1)
			r.hold.RLock()
			r.hold.RUnlock() //nolint:staticcheck,gocritic // it only waits
		}
		if _, err := to.Write(head); err != nil {
			return err
		}
		if _, err := io.CopyN(to, from, int64(binary.BigEndian.Uint32(head[start:]))-4); err != nil {
			return err
		}
	}
}

// TestStatements holds that each call is one round trip, once pgx has asked for the types of its statement.
func TestStatements(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := config(t)
			r, address := newRelay(t, c.URL)
			c.URL, c.Conns = address+"&default_query_exec_mode="+mode, 1
			s := open(t, c)
			n := 0
			b := func() store.Batch {
				n++
				key := fmt.Sprint(n)
				return store.Batch{ // without topics, which are notified later, many in one call
					Thread: "t", ID: key, Base: store.AnyRevision, Delete: []store.Range{store.All("gone")},
					Put: []store.Cell{{
						Kind: "a", Key: key, Value: []byte(key), Index: []store.IndexKey{{Name: "i", Key: key}, {Name: "u", Key: key, Unique: true}},
					}},
					Trim: []store.Trim{{Log: "l", Before: 3}}, Append: []store.Entry{{Log: "l", Data: []byte(key)}, {Log: "m"}},
				}
			}
			conflict := b()
			conflict.Base = 1 << 40
			calls := []struct {
				name string
				run  func() error
			}{
				{"apply", func() error { _, err := s.Apply(t.Context(), b()); return err }},
				{"conflict", func() error {
					if _, err := s.Apply(t.Context(), conflict); !errors.Is(err, store.ErrConflict) {
						return fmt.Errorf("no conflict: %w", err)
					}
					return nil
				}},
				{"read", func() error {
					q := store.Query{Cells: []store.Range{store.All("a"), store.All("b")}, Entries: []store.Span{{Log: "l", Limit: 9}}}
					_, err := s.Read(t.Context(), "t", q)
					return err
				}},
				{"scan", func() error {
					_, err := s.Scan(t.Context(), store.Scan{Index: "i", Limit: 9, Values: true})
					return err
				}},
				{"count", func() error { _, err := s.Count(t.Context(), "i"); return err }},
				{"time", func() error { _, err := s.Time(t.Context()); return err }},
				{"append events", func() error {
					b := store.EventBatch{Stream: "s", Fence: 1, First: 1, Last: 1}
					_, err := s.AppendEvents(t.Context(), b, b)
					return err
				}},
				{"read events", func() error { _, err := s.ReadEvents(t.Context(), "s", 0, 1, time.Minute); return err }},
			}
			for range 2 { // the connection has not seen the statements before
				for _, call := range calls {
					if err := call.run(); err != nil {
						t.Fatalf("%s: %v", call.name, err)
					}
				}
			}
			for _, call := range calls {
				before := r.trips.Load()
				if err := call.run(); err != nil {
					t.Fatalf("%s: %v", call.name, err)
				}
				if trips := r.trips.Load() - before; trips != 1 {
					t.Errorf("%s: %d round trips, want 1", call.name, trips)
				}
			}
		})
	}
}

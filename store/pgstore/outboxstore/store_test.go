package outboxstore_test

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/outbox/outboxtest"
	"github.com/mortise-dev/mortise/store/pgstore/internal/schematest"
	"github.com/mortise-dev/mortise/store/pgstore/outboxstore"
)

var server schematest.Server

func TestMain(m *testing.M) { server.Main(m) }

func open(t *testing.T, name string) *outboxstore.Store {
	t.Helper()
	s, err := outboxstore.New(t.Context(), server.Open(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	outboxtest.TestStore(t, func(t *testing.T) (outbox.Store, func() outbox.Store) {
		t.Helper()
		name := server.Name(t)
		return open(t, name), func() outbox.Store { return open(t, name) }
	})
}

// TestOrder holds that no entry comes true before one with a lesser number: a reader goes on behind the last one that it saw.
func TestOrder(t *testing.T) {
	t.Parallel()
	name := server.Name(t)
	one, other := open(t, name), open(t, name)
	const writers, each = 4, 25
	var wg sync.WaitGroup
	for w := range writers {
		s := []*outboxstore.Store{one, other}[w%2]
		wg.Go(func() {
			for i := range each {
				if _, err := s.Append(t.Context(), outbox.Change{Thread: "t", Data: fmt.Append(nil, w, "/", i)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen, last := 0, uint64(0)
	for over := false; ; {
		select {
		case <-done:
			over = true
		default:
		}
		list, err := one.Pending(t.Context(), "t", last, 1000)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			seen, last = seen+1, e.Seq
		}
		if over && len(list) == 0 {
			break
		}
	}
	if seen != writers*each {
		t.Errorf("a reader saw %d entries of %d", seen, writers*each)
	}
}

// TestAnyBytes holds that names and entries are kept whatever is in them.
func TestAnyBytes(t *testing.T) {
	t.Parallel()
	s := open(t, server.Name(t))
	odd := "\x00\xff'; DROP TABLE outbox_entry; --"
	if _, err := s.Append(t.Context(), outbox.Change{Thread: odd, Task: odd, Record: []byte(odd), Key: odd, Data: []byte(odd)}); err != nil {
		t.Fatal(err)
	}
	records, err := s.Records(t.Context(), odd)
	list, err2 := s.Pending(t.Context(), odd, 0, 9)
	if err != nil || err2 != nil || len(list) != 1 || !bytes.Equal(list[0].Data, []byte(odd)) || string(records[odd]) != odd {
		t.Errorf("kept are %v and %q; %v, %v", list, records, err, err2)
	}
}

// TestNewer holds that tables of a newer program are refused.
func TestNewer(t *testing.T) {
	t.Parallel()
	name := server.Name(t)
	open(t, name)
	schematest.Exec(t, server.Open(t, name), "INSERT INTO @.outbox_migration (version) VALUES (7)")
	if _, err := outboxstore.New(t.Context(), server.Open(t, name)); err == nil || !strings.Contains(err.Error(), "it has version 7 and this program knows versions up to 1") {
		t.Error(err)
	}
}

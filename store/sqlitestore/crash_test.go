package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

func TestMain(m *testing.M) {
	killtest.Child("SQLITE", writeForEver)
	viewtest.Child(openNamed)
	goleak.VerifyTestMain(m)
}

// writeForEver says each batch that was acknowledged.
func writeForEver(ctx context.Context, l killtest.Life, say func(words ...any)) error {
	s, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: l.Name})
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		thread := fmt.Sprintf("p%d", os.Getpid())
		b := put(thread, fmt.Sprint(n), strings.Repeat("x", n%5000))
		b.Append = []store.Entry{{Log: "l", Data: []byte("entry")}}
		b.Put[0].Index = []store.IndexKey{{Name: "i", Group: thread, Key: fmt.Sprint(n)}}
		if _, err := s.Apply(ctx, b); err != nil {
			return err
		}
		say(thread, n+1)
	}
}

// TestKilled kills processes while they write to one file. What was acknowledged is there, and each batch is whole.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	var mu sync.Mutex
	acknowledged := map[string]int{}
	for range 2 {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				thread, n := killed(t, path)
				mu.Lock()
				defer mu.Unlock()
				acknowledged[thread] = n
			})
		}
		wg.Wait()
	}
	s := open(t, path)
	counts, err := s.Count(t.Context(), "i")
	must(t, err)
	for thread, n := range acknowledged {
		out, err := s.Read(t.Context(), thread, store.Query{Cells: []store.Range{store.All("k")}, Entries: []store.Span{{Log: "l"}}})
		must(t, err)
		have := len(out.Cells)
		if have < n || have > n+1 || int(out.Last["l"]) != have || counts[thread] != have { //nolint:gosec // small
			t.Errorf("%s: %d batches acknowledged, %d cells, %d entries, %d places", thread, n, have, out.Last["l"], counts[thread])
		}
	}
	if len(acknowledged) != 6 {
		t.Errorf("%d processes wrote", len(acknowledged))
	}
}

// killed runs a process until it has written 30 batches, kills it, and returns how many were acknowledged in the end.
func killed(t *testing.T, path string) (thread string, n int) {
	t.Helper()
	p := killtest.Start(t, "SQLITE", killtest.Life{Name: path})
	if p == nil {
		return "", 0
	}
	for line := range p.Said() {
		name, number, _ := strings.Cut(line, " ")
		var err error
		if n, err = strconv.Atoi(number); err != nil {
			t.Error(err)
		}
		if thread = name; n == 30 {
			p.Kill()
		}
	}
	return thread, n
}

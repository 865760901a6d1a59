package sqlitestore_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/viewtest"
)

// writerPath makes this test binary a process that writes to a file until it is killed.
const writerPath = "MORTISE_TEST_SQLITE_WRITER"

func TestMain(m *testing.M) {
	if path := os.Getenv(writerPath); path != "" {
		writeForEver(path)
	}
	viewtest.Child(openNamed)
	goleak.VerifyTestMain(m)
}

// writeForEver prints each batch that was acknowledged.
func writeForEver(path string) {
	ctx := context.Background()
	s, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: path})
	if err != nil {
		panic(err)
	}
	for n := 0; ; n++ {
		thread := fmt.Sprintf("p%d", os.Getpid())
		b := put(thread, fmt.Sprint(n), strings.Repeat("x", n%5000))
		b.Append = []store.Entry{{Log: "l", Data: []byte("entry")}}
		b.Put[0].Index = []store.IndexKey{{Name: "i", Group: thread, Key: fmt.Sprint(n)}}
		if _, err := s.Apply(ctx, b); err != nil {
			panic(err)
		}
		fmt.Fprintln(os.Stdout, thread, n+1)
	}
}

// TestKilled kills processes while they write to one file. What was acknowledged is there, and each batch is whole.
func TestKilled(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	self, err := os.Executable()
	must(t, err)
	var mu sync.Mutex
	acknowledged := map[string]int{}
	for range 2 {
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				thread, n := killed(t, exec.CommandContext(t.Context(), self), path)
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
func killed(t *testing.T, cmd *exec.Cmd, path string) (thread string, n int) {
	t.Helper()
	cmd.Env = append(os.Environ(), writerPath+"="+path)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return "", 0
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		name, number, _ := strings.Cut(lines.Text(), " ")
		last, err := strconv.Atoi(number)
		if err != nil {
			break // a line that was cut off
		}
		if thread, n = name, last; n == 30 {
			_ = cmd.Process.Kill()
		}
	}
	_ = cmd.Wait() // killed
	return thread, n
}

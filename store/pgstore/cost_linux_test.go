package pgstore_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/internal/pgtest"
)

// cost is what one block of work took.
type cost struct {
	wall, own, server time.Duration
	flushes           int64
}

func measure(tb testing.TB, conn *pgx.Conn, s *pgtest.Server, work func()) cost {
	tb.Helper()
	own, server, count, start := used(tb), running(tb, s.Pid()), syncs(tb, conn), time.Now()
	work()
	c := cost{wall: time.Since(start)}
	c.own, c.server = used(tb)-own, running(tb, s.Pid())-server
	c.flushes = syncs(tb, conn) - count
	return c
}

// syncs counts flushes of the log.
func syncs(tb testing.TB, conn *pgx.Conn) (n int64) {
	tb.Helper()
	if _, err := conn.Exec(tb.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
		tb.Fatal(err)
	}
	if err := conn.QueryRow(tb.Context(), `SELECT wal_sync FROM pg_stat_wal`).Scan(&n); err != nil {
		tb.Fatal(err)
	}
	return n
}

// used is the CPU time of this process, and running that of the children of another one that live.
func used(tb testing.TB) time.Duration {
	tb.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func running(tb testing.TB, pid int) (sum time.Duration) {
	tb.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		tb.Fatal(err)
	}
	for child := range strings.FieldsSeq(string(children)) {
		data, err := os.ReadFile("/proc/" + child + "/schedstat")
		if err != nil {
			continue // it has ended
		}
		n, err := strconv.ParseInt(strings.Fields(string(data))[0], 10, 64)
		if err != nil {
			tb.Fatal(err)
		}
		sum += time.Duration(n)
	}
	return sum
}

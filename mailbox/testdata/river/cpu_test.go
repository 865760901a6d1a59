//go:build unix

package river

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// tick is the unit of times in /proc.
const tick = 10 * time.Millisecond

// meter returns a function that returns how much CPU this process and those of the server have used; of the server only where there is /proc.
func meter(b *testing.B, address string) func() time.Duration {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), address)
	check(b, err)
	var pid int
	check(b, conn.QueryRow(b.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	postmaster := ""
	if fields, err := stat(strconv.Itoa(pid)); err == nil {
		postmaster = fields[1]
	}
	check(b, conn.Close(b.Context()))
	return func() (total time.Duration) {
		var u syscall.Rusage
		check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		total = time.Duration(u.Utime.Nano() + u.Stime.Nano())
		all, err := filepath.Glob("/proc/[0-9]*")
		check(b, err)
		for _, dir := range all {
			f, err := stat(filepath.Base(dir))
			if err != nil {
				continue // it has ended
			}
			own := filepath.Base(dir) == postmaster
			if !own && f[1] != postmaster {
				continue
			}
			for i, field := range f[11:15] {
				if n, err := strconv.Atoi(field); err == nil && (own || i < 2) {
					total += time.Duration(n) * tick
				}
			}
		}
		return total
	}
}

// stat returns the fields of a process, from its state on.
func stat(pid string) ([]string, error) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return nil, err
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])), nil
}

package river

import (
	"bytes"
	"fmt"
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

// meter returns a function that returns how much CPU this process and those of the server have used.
func meter(b *testing.B, address string) func() (client, server time.Duration) {
	b.Helper()
	conn, err := pgx.Connect(b.Context(), address)
	check(b, err)
	var pid int
	check(b, conn.QueryRow(b.Context(), `SELECT pg_backend_pid()`).Scan(&pid))
	check(b, conn.Close(b.Context()))
	postmaster := pid
	for postmaster == pid { // until the connection has ended, its process has a parent
		stat, err := stat(fmt.Sprint(pid))
		check(b, err)
		postmaster, err = strconv.Atoi(stat[1])
		check(b, err)
	}
	return func() (client, server time.Duration) {
		var u syscall.Rusage
		check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
		client = time.Duration(u.Utime.Nano() + u.Stime.Nano())
		all, err := filepath.Glob("/proc/[0-9]*")
		check(b, err)
		for _, dir := range all {
			f, err := stat(filepath.Base(dir))
			if err != nil {
				continue // it has ended
			}
			own := filepath.Base(dir) == strconv.Itoa(postmaster)
			if !own && f[1] != strconv.Itoa(postmaster) {
				continue
			}
			for i, field := range f[11:15] {
				if n, err := strconv.Atoi(field); err == nil && (own || i < 2) {
					server += time.Duration(n) * tick
				}
			}
		}
		return client, server
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

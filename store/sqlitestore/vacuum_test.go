package sqlitestore_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// sizes returns the sizes of the file and of its write-ahead log.
func sizes(t *testing.T, path string) (file, log int64) {
	t.Helper()
	for name, size := range map[string]*int64{path: &file, path + "-wal": &log} {
		info, err := os.Stat(name)
		if err == nil {
			*size = info.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return file, log
}

// eachThread applies a batch to each of many threads, by eight writers.
func eachThread(t *testing.T, s store.Store, threads int, batch func(thread string) store.Batch) {
	t.Helper()
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := n; i < threads; i += 8 {
				if _, err := s.Apply(t.Context(), batch(fmt.Sprint("t", i))); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// fill is a batch of about 8 KB, drop one that deletes it.
func fill(thread string) store.Batch {
	b := put(thread, "k", strings.Repeat("v", 4000))
	b.Put[0].Index = []store.IndexKey{{Name: "i", Key: thread, Unique: true}}
	for range 8 {
		b.Append = append(b.Append, store.Entry{Log: "l", Data: make([]byte, 500)})
	}
	return b
}

func drop(thread string) store.Batch {
	return store.Batch{Thread: thread, Base: store.AnyRevision, Drop: true}
}

// TestVacuum holds that the file and its write-ahead log become small when most threads are dropped, while others write and read.
func TestVacuum(t *testing.T) {
	t.Parallel()
	const threads = 2000
	path := fresh(t)
	one, other := open(t, path), open(t, path)
	eachThread(t, one, threads, fill)
	file, log := sizes(t, path)
	before := file + log
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for n, s := range []store.Store{one, other, one, other} {
		busy.Go(func() { work(t, s, fmt.Sprint("busy", n), stop) })
	}
	eachThread(t, one, threads, drop)
	small := func() bool {
		file, log = sizes(t, path)
		return file+log <= before/4
	}
	for end := time.Now().Add(time.Minute); !small(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("of %d bytes the file has %d and its log %d after all threads were dropped", before, file, log)
		}
	}
	close(stop)
	busy.Wait()
	for n := range 4 {
		if got := cells(t, one, fmt.Sprint("busy", n)); len(got) != 1 {
			t.Errorf("writer %d wrote %d cells", n, len(got))
		}
	}
	checkFile(t, one)
}

// work writes and reads until it is stopped.
func work(t *testing.T, s store.Store, thread string, stop <-chan struct{}) {
	t.Helper()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		default:
		}
		b := put(thread, "k", strings.Repeat("w", i%2000))
		_, err := s.Apply(t.Context(), b)
		if err == nil {
			_, err = s.Read(t.Context(), thread, store.Query{Cells: []store.Range{store.All("k")}})
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// checkFile has SQLite check the file.
func checkFile(t *testing.T, s *sqlitestore.Store) {
	t.Helper()
	n, err := s.Number(t.Context(), "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
	if err != nil || n != 0 {
		t.Errorf("the file is damaged in %d places, %v", n, err)
	}
}

// TestVacuum_idle holds that nothing needs to be written for space to be given back, and that some space stays for later batches.
func TestVacuum_idle(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	_, err := s.Apply(t.Context(), put("large", "k", strings.Repeat("v", 20<<20)))
	must(t, err)
	_, err = s.Apply(t.Context(), put("kept", "k", strings.Repeat("v", 1<<20)))
	must(t, err)
	_, err = s.Apply(t.Context(), drop("large"))
	must(t, err)
	for end := time.Now().Add(time.Minute); ; <-time.After(5 * time.Millisecond) {
		file, log := sizes(t, path)
		if file < 2<<20 && log == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the file has %d bytes, its log %d", file, log)
		}
	}
	if got := cells(t, s, "kept"); len(got) != 1 || len(got[0].Value) != 1<<20 {
		t.Errorf("%d cells", len(got))
	}
	checkFile(t, s)
}

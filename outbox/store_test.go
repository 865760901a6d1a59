package outbox_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/outbox/outboxtest"
)

func TestMain(m *testing.M) {
	if folder := os.Getenv(agentCrashEnv); folder != "" {
		os.Exit(agentCrashChild(folder))
	}
	if path := os.Getenv(crashEnv); path != "" {
		os.Exit(crashChild(path))
	}
	goleak.VerifyTestMain(m)
}

func openFile(t *testing.T, cfg outbox.FileConfig) *outbox.File {
	t.Helper()
	f, err := outbox.OpenFile(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestMemoryKeepsTheContract(t *testing.T) {
	t.Parallel()
	outboxtest.TestStore(t, func(*testing.T) (outbox.Store, func() outbox.Store) { return outbox.NewMemory(), nil })
}

func TestFileKeepsTheContract(t *testing.T) {
	t.Parallel()
	for name, rewrite := range map[string]int64{"plain": 0, "rewritten_all_the_time": 1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outboxtest.TestStore(t, func(t *testing.T) (outbox.Store, func() outbox.Store) {
				t.Helper()
				cfg := outbox.FileConfig{Path: filepath.Join(t.TempDir(), "sub", "outbox"), RewriteBytes: rewrite}
				f := openFile(t, cfg)
				return f, func() outbox.Store {
					if err := f.Close(); err != nil {
						t.Fatal(err)
					}
					return openFile(t, cfg)
				}
			})
		})
	}
}

func change(i int) outbox.Change {
	return outbox.Change{Thread: "a", Task: fmt.Sprint(i), Record: []byte("record"), Data: fmt.Append(nil, "data ", i), Key: fmt.Sprint(i)}
}

// TestTornJournal cuts and damages a journal at every byte.
func TestTornJournal(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outbox")
	f := openFile(t, outbox.FileConfig{Path: path, NoSync: true})
	var ends []int64
	for i := range 4 {
		if _, err := f.Append(t.Context(), change(i)); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, info.Size())
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "outbox")
	count := func(data []byte) (int, error) {
		if err := os.WriteFile(other, data, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := outbox.OpenFile(outbox.FileConfig{Path: other, NoSync: true})
		if err != nil {
			return 0, err
		}
		defer f.Close()
		entries, err := f.Pending(t.Context(), "a", 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Append(t.Context(), change(9)); err != nil {
			t.Fatalf("after a torn line nothing can be written: %v", err)
		}
		return len(entries), nil
	}
	for cut := range whole {
		want := 0
		for _, end := range ends {
			if int64(cut) >= end {
				want++
			}
		}
		if got, err := count(whole[:cut]); err != nil || got != want {
			t.Fatalf("cut at %d: %d entries, %v, want %d", cut, got, err, want)
		}
	}
	for at := range whole {
		damaged := bytes.Clone(whole)
		damaged[at] ^= 0x15
		got, err := count(damaged)
		inLast := int64(at) >= ends[2] && !errors.Is(err, outbox.ErrCorrupt)
		if inLast && (err != nil || got != 3) || !inLast && !errors.Is(err, outbox.ErrCorrupt) {
			t.Fatalf("damaged at %d of %d: %d entries, %v", at, len(whole), got, err)
		}
		if left, readErr := os.ReadFile(other); err != nil && (readErr != nil || !bytes.Equal(left, damaged)) {
			t.Fatal("a corrupt journal was changed")
		}
	}
}

// Whoever has a lock has it alone, and lets go of it by closing it.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "store.db-outbox")
	lock, err := outbox.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := outbox.Lock(path); !errors.Is(err, outbox.ErrLocked) || !strings.Contains(err.Error(), path) {
		t.Errorf("taken twice: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := outbox.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := outbox.Lock(filepath.Join(path, "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
}

func TestFileIsPrivateAndLocked(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sub", "outbox")
	f := openFile(t, outbox.FileConfig{Path: path})
	if _, err := outbox.OpenFile(outbox.FileConfig{Path: path}); !errors.Is(err, outbox.ErrLocked) {
		t.Fatalf("a second store opened the journal: %v", err)
	}
	if runtime.GOOS != "windows" {
		for name, want := range map[string]os.FileMode{path: 0o600, filepath.Dir(path): 0o700} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
				t.Errorf("%s has the mode %s, want %s", filepath.Base(name), info.Mode(), want)
			}
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Append(t.Context(), change(1)); !errors.Is(err, outbox.ErrStoreClosed) {
		t.Fatalf("a closed store took a change: %v", err)
	}
	if _, err := f.Records(t.Context(), "a"); !errors.Is(err, outbox.ErrStoreClosed) {
		t.Fatalf("a closed store was read: %v", err)
	}
	openFile(t, outbox.FileConfig{Path: path})
}

func TestFileConfigNamesTheField(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]outbox.FileConfig{"Path": {}, "MaxBytes": {Path: "x", MaxBytes: -1}, "RewriteBytes": {Path: "x", RewriteBytes: -1}} {
		if _, err := outbox.OpenFile(cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error is %v, want one that names %s", err, field)
		}
	}
}

// TestJournalIsBounded fills a journal, sees it refuse, and sees it take more when
// what it held was acknowledged and forgotten.
func TestJournalIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "outbox")
	f := openFile(t, outbox.FileConfig{Path: path, MaxBytes: 16 << 10, NoSync: true})
	var err error
	var seqs []uint64
	for i := 0; err == nil && i < 10_000; i++ {
		var seq uint64
		seq, err = f.Append(t.Context(), change(i))
		seqs = append(seqs, seq)
	}
	if !errors.Is(err, outbox.ErrFull) {
		t.Fatalf("error is %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 16<<10 {
		t.Fatalf("the journal has %d bytes", info.Size())
	}
	// Room is made by what is shorter than what it removes.
	for i := range seqs {
		_ = f.Remove(t.Context(), "a", seqs[i])
		_ = f.Forget(t.Context(), "a", fmt.Sprint(i))
	}
	if _, err := f.Append(t.Context(), change(99_999)); err != nil {
		t.Fatalf("there is no room although nothing is left: %v", err)
	}
	if _, err := f.Append(t.Context(), outbox.Change{Thread: "a", Data: make([]byte, 20<<20)}); !errors.Is(err, outbox.ErrTooLarge) {
		t.Fatalf("an endless entry: %v", err)
	}
}

// FuzzJournal opens journals that somebody else may have written.
func FuzzJournal(f *testing.F) {
	f.Add([]byte("00000000 {}\n"))
	f.Add([]byte("\n\n\n"))
	f.Add([]byte(strings.Repeat("x", 100_000)))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "outbox")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		store, err := outbox.OpenFile(outbox.FileConfig{Path: path, NoSync: true})
		if err != nil {
			return
		}
		if _, err := store.Append(t.Context(), change(1)); err != nil {
			t.Errorf("append: %v", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		again, err := outbox.OpenFile(outbox.FileConfig{Path: path, NoSync: true})
		if err != nil {
			t.Fatalf("what the store wrote cannot be opened: %v", err)
		}
		if err := again.Close(); err != nil {
			t.Error(err)
		}
	})
}

package sqlitestore_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// disk is what a power cut leaves of the files in a folder: what was flushed, and any part of what was written after that.
type disk struct {
	folder string
	// lies is set for a disk that flushes nothing.
	lies bool
	// cut receives what a power cut leaves of the files.
	cut func(files map[string][]byte)

	mu    sync.Mutex
	files map[string]*diskFile
	rnd   *rand.Rand
	next  int
	// shrunk is set when the database became smaller.
	shrunk bool
}

// diskFile is a file as it was when it was flushed, and what was written since.
type diskFile struct {
	flushed []byte
	pending []change
}

// change is a write at an offset, or with no data a truncation.
type change struct {
	at   int64
	data []byte
}

// sector is the part of a write that a disk writes as a whole.
const sector = 512

func newDisk(folder string, seed uint64) *disk {
	return &disk{folder: folder, files: map[string]*diskFile{}, rnd: rand.New(rand.NewPCG(seed, 11)), next: 1} //nolint:gosec // not a secret
}

// change records what is written. Now and then it cuts the power first. The caller holds the lock.
func (d *disk) change(name string, c change) {
	d.step()
	f := d.files[name]
	if f == nil {
		f = &diskFile{}
		d.files[name] = f
	}
	f.pending = append(f.pending, c)
	d.shrunk = d.shrunk || name == "store.db" && c.data == nil
}

// flush makes all changes of a file lasting. The caller holds the lock.
func (d *disk) flush(name string) {
	d.step()
	if f := d.files[name]; f != nil && !d.lies {
		for _, c := range f.pending {
			f.flushed = c.apply(f.flushed)
		}
		f.pending = nil
	}
}

func (d *disk) step() {
	d.next--
	if d.next > 0 {
		return
	}
	d.next = 1 + d.rnd.IntN(300)
	files := map[string][]byte{}
	for name, f := range d.files {
		files[name] = f.after(d.rnd)
	}
	d.cut(files)
}

func (d *disk) hasShrunk() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shrunk
}

// after returns what a power cut leaves of a file: some of the sectors that were not flushed.
func (f *diskFile) after(rnd *rand.Rand) []byte {
	out := append([]byte{}, f.flushed...)
	keep := rnd.IntN(3) // none, some or all
	for _, c := range f.pending {
		switch {
		case keep == 0 || keep == 1 && rnd.IntN(3) == 0:
		case keep == 2 || c.data == nil:
			out = c.apply(out)
		default:
			for n := 0; n < len(c.data); n += sector {
				if rnd.IntN(4) > 0 {
					out = change{c.at + int64(n), c.data[n:min(n+sector, len(c.data))]}.apply(out)
				}
			}
		}
	}
	return out
}

func (c change) apply(file []byte) []byte {
	if c.data == nil {
		return append(file, make([]byte, max(0, int(c.at)-len(file)))...)[:c.at]
	}
	if end := int(c.at) + len(c.data); end > len(file) {
		file = append(file, make([]byte, end-len(file))...)
	}
	copy(file[c.at:], c.data)
	return file
}

// acknowledged has how many batches of each thread were acknowledged.
type acknowledged struct {
	mu sync.Mutex
	n  map[string]int
}

func (a *acknowledged) set(thread string, n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n[thread] = n
}

func (a *acknowledged) copy() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return maps.Clone(a.n)
}

// powerCuts writes with two stores at once, and returns after each of many cuts what the files and what was acknowledged.
func powerCuts(t *testing.T, d *disk) (copies []string, acks []map[string]int) {
	t.Helper()
	a := &acknowledged{n: map[string]int{}}
	d.cut = func(files map[string][]byte) {
		acks = append(acks, a.copy())
		folder := filepath.Join(t.TempDir(), "cut")
		must(t, os.Mkdir(folder, 0o700))
		for name, data := range files {
			must(t, os.WriteFile(filepath.Join(folder, name), data, 0o600))
		}
		copies = append(copies, filepath.Join(folder, "store.db"))
	}
	watchDisk(d)
	defer unwatchDisk(d)
	path := filepath.Join(d.folder, "store.db")
	one, other := open(t, path), open(t, path)
	var wg sync.WaitGroup
	var events atomic.Uint64
	for w := range 4 {
		wg.Go(func() {
			s, thread := []*sqlitestore.Store{one, other}[w%2], fmt.Sprint("w", w)
			for n := range 60 {
				b := put(thread, fmt.Sprintf("%03d", n), strings.Repeat("x", n*97%3000))
				b.Append = []store.Entry{{Log: "l", Data: []byte("entry")}}
				b.Put[0].Index = []store.IndexKey{{Name: "i", Group: thread, Key: fmt.Sprint(n)}}
				_, err := s.Apply(t.Context(), b)
				if err == nil {
					a.set(thread, n+1)
					e := events.Add(1)
					_, err = s.AppendEvents(t.Context(), store.EventBatch{Stream: thread, First: e, Last: e, Data: make([]byte, 300)})
				}
				if err == nil && n%10 == 9 { // something to vacuum, and a long log
					_, err = s.Apply(t.Context(), put(thread+"large", "k", strings.Repeat("y", 600_000)))
				}
				if err == nil && n%10 == 9 {
					_, err = s.Apply(t.Context(), drop(thread+"large"))
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	for end := time.Now().Add(time.Minute); !d.hasShrunk(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no space was given back")
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return copies, acks
}

// survived reports what is wrong after a power cut.
func survived(t *testing.T, path string, acks map[string]int) error {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		if len(acks) == 0 { // while it was made
			return nil
		}
		return err
	}
	defer func() { _ = s.Close(t.Context()) }()
	bad, err := s.Number(t.Context(), "SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'")
	if err != nil || bad > 0 {
		return fmt.Errorf("%d places are damaged: %w", bad, err)
	}
	counts, err := s.Count(t.Context(), "i")
	if err != nil {
		return err
	}
	for thread, n := range acks {
		out, err := s.Read(t.Context(), thread, store.Query{Cells: []store.Range{store.All("k")}, Entries: []store.Span{{Log: "l"}}})
		have := len(out.Cells)
		if err != nil || have < n || have > n+1 || int(out.Last["l"]) != have || counts[thread] != have { //nolint:gosec // small
			return fmt.Errorf("%s: %d batches acknowledged, %d cells, %d entries, %d places, %w", thread, n, have, out.Last["l"], counts[thread], err)
		}
	}
	_, err = s.Apply(t.Context(), put("after", "k", "x"))
	return err
}

// TestPowerCut cuts the power at random moments, also of checkpoints and while space is given back: any part of what was not flushed is
// lost. What was acknowledged is there, and each batch is whole.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for seed := range testskip.Rounds(3, 1) {
		copies, acks := powerCuts(t, newDisk(t.TempDir(), uint64(seed))) //nolint:gosec // not negative
		if len(copies) < 30 {
			t.Errorf("the power was cut %d times", len(copies))
		}
		for i, path := range copies {
			if err := survived(t, path, acks[i]); err != nil {
				t.Errorf("seed %d, cut %d of %d: %v", seed, i, len(copies), err)
			}
		}
	}
}

// TestPowerCut_lies holds that the test finds a disk that does not flush.
func TestPowerCut_lies(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	testskip.Plain(t)
	d := newDisk(t.TempDir(), 1)
	d.lies = true
	copies, acks := powerCuts(t, d)
	for i, path := range copies {
		if survived(t, path, acks[i]) != nil {
			return
		}
	}
	t.Errorf("%d power cuts lost nothing", len(copies))
}

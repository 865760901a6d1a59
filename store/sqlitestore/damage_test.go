package sqlitestore_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// TestFull holds that a full disk fails the batches that it has no room for, and loses nothing.
func TestFull(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	_, err := s.Apply(t.Context(), put("t", "1", "kept"))
	must(t, err)
	must(t, s.Script(t.Context(), "PRAGMA max_page_count = 30"))
	release := block(t, path)
	large, small := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := s.Apply(t.Context(), put("t", "small", "y"))
		small <- err
	}()
	waiting(s, 1)
	go func() {
		_, err := s.Apply(t.Context(), put("t", "large", strings.Repeat("x", 1<<20)))
		large <- err
	}()
	waiting(s, 2)
	release()
	if err := <-large; err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("written to a full disk: %v", err)
	}
	must(t, <-small) // of the same group
	must(t, s.Script(t.Context(), "PRAGMA max_page_count = 100000"))
	_, err = s.Apply(t.Context(), put("t", "large", strings.Repeat("x", 1<<20)))
	must(t, err)
	if got := cells(t, s, "t"); len(got) != 3 {
		t.Errorf("%d cells", len(got))
	}
}

// TestDamaged holds that a damaged file gives errors.
func TestDamaged(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	s := open(t, path)
	for _, thread := range []string{"a", "b"} {
		b := put(thread, "1", strings.Repeat(thread, 100_000))
		b.Append = []store.Entry{{Log: "l"}}
		_, err := s.Apply(t.Context(), b)
		must(t, err)
	}
	must(t, s.Close(t.Context()))
	whole, err := os.ReadFile(path)
	must(t, err)
	const page = 4096
	for name, data := range map[string][]byte{
		"a file that was cut off": whole[:len(whole)/2],
		"a page of zeros":         append(append(append([]byte{}, whole[:page]...), make([]byte, 20*page)...), whole[21*page:]...),
		"a page of noise":         append(append(append([]byte{}, whole[:page]...), bytes.Repeat([]byte{0xa7}, 20*page)...), whole[21*page:]...),
		"a header of noise":       append(bytes.Repeat([]byte{0xa7}, page), whole[page:]...),
	} {
		must(t, os.WriteFile(path, data, 0o600))
		if err := use(t, path); err == nil || !strings.Contains(err.Error(), "sqlitestore: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	must(t, os.WriteFile(path, whole, 0o600))
	must(t, use(t, path))
}

// use opens a file, and reads and writes it.
func use(t *testing.T, path string) error {
	t.Helper()
	s, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		return err
	}
	defer func() { _ = s.Close(t.Context()) }()
	for _, thread := range []string{"a", "b"} {
		if _, err := s.Read(t.Context(), thread, store.Query{Cells: []store.Range{store.All("k")}}); err != nil {
			return err
		}
	}
	_, err = s.Apply(t.Context(), put("c", "1", "x"))
	return err
}

// TestDamaged_counter holds that revisions do not begin again when the counter is lost.
func TestDamaged_counter(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	must(t, s.Script(t.Context(), "DELETE FROM counter"))
	_, err := s.Apply(t.Context(), put("t", "1", ""))
	for _, err := range []error{err, s.Health(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("got %v", err)
		}
	}
}

package outboxtest

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/outbox"
)

// TestStore checks that a store keeps the contract of outbox.Store. Open returns an
// empty store, and how to open it again with what it holds; again is nil for a
// store that lasts as long as the process.
func TestStore(t *testing.T, open func(t *testing.T) (s outbox.Store, again func() outbox.Store)) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, outbox.Store, func() outbox.Store){
		"order":      testOrder,
		"keys":       testKeys,
		"records":    testRecords,
		"remove":     testRemove,
		"threads":    testThreads,
		"concurrent": testConcurrent,
		"reopen":     testReopen,
		"bytes":      testBytes,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, again := open(t)
			if again == nil {
				again = func() outbox.Store { return s }
			}
			test(t, s, again)
		})
	}
}

func add(t *testing.T, s outbox.Store, c outbox.Change) uint64 {
	t.Helper()
	seq, err := s.Append(t.Context(), c)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return seq
}

func entry(thread, data string) outbox.Change {
	return outbox.Change{Thread: thread, Data: []byte(data), At: time.UnixMilli(5)}
}

func pending(t *testing.T, s outbox.Store, thread string, after uint64, limit int) (data []string, seqs []uint64) {
	t.Helper()
	entries, err := s.Pending(t.Context(), thread, after, limit)
	if err != nil {
		t.Fatalf("pending: %v", err)
	}
	for _, e := range entries {
		data, seqs = append(data, string(e.Data)), append(seqs, e.Seq)
	}
	return data, seqs
}

func expect(t *testing.T, s outbox.Store, thread string, want ...string) {
	t.Helper()
	if got, _ := pending(t, s, thread, 0, 1000); !slices.Equal(got, want) {
		t.Fatalf("thread %s has %q, want %q", thread, got, want)
	}
}

func testOrder(t *testing.T, s outbox.Store, _ func() outbox.Store) {
	var last uint64
	for i := range 5 {
		seq := add(t, s, entry("a", fmt.Sprint(i)))
		if seq <= last {
			t.Fatalf("entry %d has the number %d after %d", i, seq, last)
		}
		last = seq
		add(t, s, entry("b", "other"))
	}
	expect(t, s, "a", "0", "1", "2", "3", "4")
	_, seqs := pending(t, s, "a", 0, 2)
	if got, _ := pending(t, s, "a", seqs[1], 2); len(seqs) != 2 || !slices.Equal(got, []string{"2", "3"}) {
		t.Fatalf("the second page is %q", got)
	}
	if got, _ := pending(t, s, "a", last, 2); len(got) != 0 {
		t.Fatalf("after the last comes %q", got)
	}
	entries, _ := s.Pending(t.Context(), "a", 0, 1)
	if !entries[0].At.Equal(time.UnixMilli(5)) {
		t.Fatalf("the time is %s", entries[0].At)
	}
}

func testKeys(t *testing.T, s outbox.Store, _ func() outbox.Store) {
	first := outbox.Change{Thread: "a", Task: "t", Record: []byte("first"), Data: []byte("1"), Key: "t"}
	second := outbox.Change{Thread: "a", Task: "t", Record: []byte("second"), Data: []byte("2"), Key: "t"}
	seq := add(t, s, first)
	if again := add(t, s, second); again != 0 || seq == 0 {
		t.Fatalf("numbers are %d and %d, want the second to be 0", seq, again)
	}
	expect(t, s, "a", "1")
	records, _ := s.Records(t.Context(), "a")
	if string(records["t"]) != "first" {
		t.Fatalf("the record is %q", records["t"])
	}
	second.Thread = "b"
	if add(t, s, second) == 0 {
		t.Fatal("another thread's key was taken for its own")
	}
	if err := s.Remove(t.Context(), "a", seq); err != nil {
		t.Fatal(err)
	}
	if add(t, s, first) != 0 {
		t.Fatal("the key was free again after its entry was removed")
	}
	if err := s.Forget(t.Context(), "a", "t"); err != nil {
		t.Fatal(err)
	}
	if add(t, s, first) <= seq {
		t.Fatal("the key was not free, or a number was used twice, after the task was forgotten")
	}
}

func testRecords(t *testing.T, s outbox.Store, _ func() outbox.Store) {
	if seq := add(t, s, outbox.Change{Thread: "a", Task: "t", Record: []byte("1")}); seq != 0 {
		t.Fatalf("a record alone has the number %d", seq)
	}
	add(t, s, outbox.Change{Thread: "a", Task: "t", Record: []byte("2")})
	add(t, s, outbox.Change{Thread: "a", Task: "u", Record: []byte("3"), Data: []byte("d"), Key: "u"})
	records, err := s.Records(t.Context(), "a")
	if want := map[string][]byte{"t": []byte("2"), "u": []byte("3")}; err != nil || !maps.EqualFunc(records, want, bytes.Equal) {
		t.Fatalf("records are %q, %v", records, err)
	}
	expect(t, s, "a", "d")
	if err := s.Forget(t.Context(), "a", "t", "nobody"); err != nil {
		t.Fatal(err)
	}
	records, _ = s.Records(t.Context(), "a")
	if len(records) != 1 || string(records["u"]) != "3" {
		t.Fatalf("records are %q", records)
	}
	if other, err := s.Records(t.Context(), "none"); err != nil || len(other) != 0 {
		t.Fatalf("a thread that never was has %q, %v", other, err)
	}
}

func testRemove(t *testing.T, s outbox.Store, _ func() outbox.Store) {
	var seqs []uint64
	for i := range 4 {
		seqs = append(seqs, add(t, s, entry("a", fmt.Sprint(i))))
	}
	for range 2 { // what is gone can be removed again
		if err := s.Remove(t.Context(), "a", seqs[1], seqs[2], 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Remove(t.Context(), "b", seqs[0]); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "a", "0", "3")
}

func testThreads(t *testing.T, s outbox.Store, _ func() outbox.Store) {
	names := func() []string {
		out, err := s.Threads(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	seq := add(t, s, entry("b", "x"))
	add(t, s, outbox.Change{Thread: "a", Task: "t", Record: []byte("r")})
	if got := names(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("threads are %q", got)
	}
	if err := s.Remove(t.Context(), "b", seq); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(t.Context(), "a", "t"); err != nil {
		t.Fatal(err)
	}
	if got := names(); len(got) != 0 {
		t.Fatalf("threads of which nothing is left: %q", got)
	}
}

func testConcurrent(t *testing.T, s outbox.Store, _ func() outbox.Store) {
	const writers, each = 8, 50
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen, ends := map[uint64]bool{}, 0
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				seq, err := s.Append(t.Context(), entry("a", fmt.Sprint(w, "/", i)))
				end, endErr := s.Append(t.Context(), outbox.Change{Thread: "b", Data: []byte("end"), Key: fmt.Sprint(i)})
				if err != nil || endErr != nil {
					t.Errorf("append: %v, %v", err, endErr)
				}
				mu.Lock()
				if seen[seq] {
					t.Errorf("number %d was used twice", seq)
				}
				seen[seq] = true
				if end != 0 {
					ends++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	got, seqs := pending(t, s, "a", 0, 1000)
	if len(got) != writers*each || !slices.IsSorted(seqs) {
		t.Fatalf("%d of %d entries are there, in order: %v", len(got), writers*each, slices.IsSorted(seqs))
	}
	if other, _ := pending(t, s, "b", 0, 1000); len(other) != each || ends != each {
		t.Fatalf("%d entries for %d keys, %d were told that theirs was the first", len(other), each, ends)
	}
}

func testReopen(t *testing.T, s outbox.Store, again func() outbox.Store) {
	seq := add(t, s, outbox.Change{Thread: "a", Task: "t", Record: []byte("r"), Data: []byte("end"), Key: "t"})
	last := add(t, s, entry("a", "x"))
	if err := s.Remove(t.Context(), "a", seq); err != nil {
		t.Fatal(err)
	}
	s = again()
	expect(t, s, "a", "x")
	records, _ := s.Records(t.Context(), "a")
	if string(records["t"]) != "r" {
		t.Fatalf("the record is %q", records["t"])
	}
	if add(t, s, outbox.Change{Thread: "a", Data: []byte("end"), Key: "t"}) != 0 {
		t.Fatal("what was acknowledged came again")
	}
	if next := add(t, s, entry("a", "y")); next <= last {
		t.Fatalf("number %d came after %d", next, last)
	}
}

func testBytes(t *testing.T, s outbox.Store, again func() outbox.Store) {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	thread := "thread \x00\n\"\\ \u2028 é"
	add(t, s, outbox.Change{Thread: thread, Task: "t\n", Record: all, Data: append([]byte("\n"), all...), Key: "k"})
	s = again()
	got, _ := pending(t, s, thread, 0, 1)
	records, _ := s.Records(t.Context(), thread)
	if len(got) != 1 || got[0] != "\n"+string(all) || !bytes.Equal(records["t\n"], all) {
		t.Fatalf("bytes came back as %q and %q", got, records)
	}
}

package outboxstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/outboxstore"
)

func entry(data string) outbox.Change {
	return outbox.Change{Thread: "t", Data: []byte(data), At: time.UnixMilli(7)}
}

// end is the end of a task, with its record.
func end(task string) outbox.Change {
	return outbox.Change{Thread: "t", Task: task, Record: []byte("record " + task), Data: []byte("end of " + task), Key: task}
}

func add(t *testing.T, s outbox.Store, c outbox.Change) uint64 {
	t.Helper()
	seq, err := s.Append(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func expect(t *testing.T, s outbox.Store, want ...string) {
	t.Helper()
	entries, err := s.Pending(t.Context(), "t", 0, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, string(e.Data))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the thread has %.200q, want %.200q", got, want)
	}
}

// A write that landed and whose acknowledgement was lost is found.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	mailbox, line := servertest.OnLine(t, time.Minute)
	s := open(t, mailbox)
	for i := range 4 {
		line.Hiccup(func() {
			if add(t, s, end(fmt.Sprint(i))) == 0 {
				t.Errorf("the store took its own write of %d for another's", i)
			}
		})
	}
	want := []string{"end of 0", "end of 1", "end of 2", "end of 3"}
	expect(t, s, want...)
	expect(t, open(t, mailbox), want...)
}

// What was reported as failed did not happen, although it had landed: it can be asked for again.
func TestFailedIsUndone(t *testing.T) {
	t.Parallel()
	mailbox, line := servertest.OnLine(t, 4*time.Second)
	s := open(t, mailbox)
	first := add(t, s, end("first"))
	line.Cut()
	var wg sync.WaitGroup
	for _, c := range []outbox.Change{end("lost"), entry("lost too")} {
		wg.Go(func() {
			if seq, err := s.Append(t.Context(), c); err == nil || seq != 0 {
				t.Errorf("appended as %d without an answer", seq)
			}
		})
	}
	wg.Go(func() {
		if err := s.Remove(t.Context(), "t", first); err == nil {
			t.Error("removed without an answer")
		}
	})
	wg.Wait()
	line.Heal()
	expect(t, s, "end of first")
	again := patiently(t, s, end("lost"))
	if again <= first {
		t.Errorf("its key was taken, or number %d is old", again)
	}
	for _, s := range []outbox.Store{s, open(t, mailbox)} {
		expect(t, s, "end of first", "end of lost")
		records, err := s.Records(t.Context(), "t")
		if err != nil || len(records) != 2 {
			t.Errorf("%d records, %v", len(records), err)
		}
	}
}

// patiently appends until the connection is there again.
func patiently(t *testing.T, s outbox.Store, c outbox.Change) uint64 {
	t.Helper()
	for {
		seq, err := s.Append(t.Context(), c)
		if err == nil {
			return seq
		}
		if t.Context().Err() != nil {
			t.Fatal(err)
		}
	}
}

// What a caller took back before it was on its way is not written.
func TestCancelled(t *testing.T) {
	t.Parallel()
	s := open(t, servertest.Open(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Append(ctx, entry("x")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	expect(t, s)
}

// Two stores at once do no harm to what is kept.
func TestTwoStores(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	stores := []*outboxstore.Store{open(t, mailbox), open(t, mailbox)}
	const each, kept = 60, 20
	var mu sync.Mutex
	seen, ends := map[uint64]bool{}, 0
	var wg sync.WaitGroup
	for n, s := range stores {
		wg.Go(func() {
			for i := range each {
				seq, err := s.Append(t.Context(), entry(fmt.Sprint(n, "/", i)))
				last, endErr := s.Append(t.Context(), end(fmt.Sprint(i)))
				if err = errors.Join(err, endErr); err == nil && i >= kept {
					err = s.Remove(t.Context(), "t", seq)
				}
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				if seen[seq] || seen[last] {
					t.Errorf("numbers %d or %d were used twice", seq, last)
				}
				if seen[seq] = true; last != 0 {
					seen[last] = true
					ends++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	left, err := open(t, mailbox).Pending(t.Context(), "t", 0, 1000)
	if err != nil || len(left) != each+2*kept || ends != each {
		t.Errorf("%d entries are left, want %d; %d ends, want %d; %v", len(left), each+2*kept, ends, each, err)
	}
}

// A store that did not see that another one emptied and filled a thread finds out when it writes.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	one := open(t, mailbox)
	seq := add(t, one, entry("old"))
	other := open(t, mailbox)
	if err := one.Remove(t.Context(), "t", seq); err != nil {
		t.Fatal(err)
	}
	add(t, other, entry("a"))
	add(t, one, entry("b"))
	add(t, other, entry("c"))
	expect(t, other, "a", "b", "c")
	expect(t, open(t, mailbox), "a", "b", "c")
}

// A log is about as long as what is live, and nothing is left of a thread of which nothing is.
func TestLogIsRewritten(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	s := open(t, mailbox)
	kept := add(t, s, end("kept"))
	data, most := strings.Repeat("x", 8<<10), uint64(0)
	log := servertest.Stream(t, mailbox.Link().Name+"-outbox")
	for range 150 {
		if err := s.Remove(t.Context(), "t", add(t, s, entry(data))); err != nil {
			t.Fatal(err)
		}
		info, err := log.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, info.State.Bytes)
	}
	if most > 512<<10 {
		t.Errorf("the stream had %d bytes", most)
	}
	s = open(t, mailbox)
	expect(t, s, "end of kept")
	if err := errors.Join(s.Remove(t.Context(), "t", kept), s.Forget(t.Context(), "t", "kept")); err != nil {
		t.Fatal(err)
	}
	if info, err := log.Info(t.Context()); err != nil || info.State.Msgs != 0 {
		t.Errorf("%d messages are left, %v", info.State.Msgs, err)
	}
	if next := add(t, s, end("kept")); next <= kept {
		t.Errorf("number %d came after %d", next, kept)
	}
}

// Operations that are longer than a message come back whole.
func TestLong(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	s := open(t, mailbox)
	data, record := bytes.Repeat([]byte("0123456789"), 150_000), bytes.Repeat([]byte("abc"), 400_000)
	seq := add(t, s, outbox.Change{Thread: "t", Task: "a", Record: record, Data: data, Key: "a"})
	for range 4 { // until the log is rewritten
		if err := s.Remove(t.Context(), "t", add(t, s, entry(string(data)))); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, mailbox)
	list, err := s.Pending(t.Context(), "t", 0, 10)
	if err != nil || len(list) != 1 || list[0].Seq != seq || !bytes.Equal(list[0].Data, data) {
		t.Fatalf("%d entries, %v", len(list), err)
	}
	if records, err := s.Records(t.Context(), "t"); err != nil || !bytes.Equal(records["a"], record) {
		t.Errorf("the record has %d bytes, %v", len(records["a"]), err)
	}
	if _, err := s.Append(t.Context(), entry(string(make([]byte, 17<<20)))); !errors.Is(err, outbox.ErrTooLarge) {
		t.Errorf("17 MiB: got %v", err)
	}
}

func TestFull(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	s, err := outboxstore.New(t.Context(), mailbox, outboxstore.Config{MaxBytes: 2000})
	if err != nil {
		t.Fatal(err)
	}
	seq := add(t, s, entry(strings.Repeat("x", 1500)))
	if _, err := s.Append(t.Context(), entry(strings.Repeat("x", 500))); !errors.Is(err, outbox.ErrFull) {
		t.Errorf("got %v, want ErrFull", err)
	}
	if err := s.Remove(t.Context(), "t", seq); err != nil {
		t.Errorf("nothing can be removed from a full store: %v", err)
	}
	add(t, s, entry(strings.Repeat("x", 500)))
	if _, err := outboxstore.New(t.Context(), mailbox, outboxstore.Config{MaxBytes: -1}); err == nil {
		t.Error("a bound below 0 was taken")
	}
}

// A log of which a part is missing is not guessed at.
func TestGapIsRefused(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	s := open(t, mailbox)
	for i := range 3 {
		add(t, s, entry(fmt.Sprint(i)))
	}
	name := mailbox.Link().Name + "-outbox"
	if err := servertest.Stream(t, name).DeleteMsg(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	_, err := outboxstore.New(t.Context(), mailbox, outboxstore.Config{})
	if err == nil || !strings.Contains(err.Error(), "is missing") || !strings.Contains(err.Error(), "nats stream purge "+name+" --subject "+name+".") {
		t.Errorf("got %v", err)
	}
}

package outboxstore_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// model does to a store in memory what the store that is tested says that it has done.
type model struct {
	t         *testing.T
	s         outbox.Store
	memory    *outbox.Memory
	random    *rand.Rand
	numbers   map[uint64]uint64 // of the memory's entries, by those of the store's
	greatest  uint64
	done, not int
}

const modelThreads = 2

// step does something, and says whether the store did it.
func (m *model) step() bool {
	thread, task := fmt.Sprint("thread", m.random.IntN(modelThreads)), fmt.Sprint("task", m.random.IntN(4))
	var err error
	switch m.random.IntN(6) {
	case 0:
		var seqs, theirs []uint64
		for _, n := range slices.Sorted(maps.Keys(m.numbers)) {
			if m.random.IntN(2) == 0 {
				seqs, theirs = append(seqs, n), append(theirs, m.numbers[n])
			}
		}
		if err = m.s.Remove(m.t.Context(), thread, seqs...); err == nil {
			err = m.memory.Remove(m.t.Context(), thread, theirs...)
		}
	case 1:
		if err = m.s.Forget(m.t.Context(), thread, task, "nobody"); err == nil {
			err = m.memory.Forget(m.t.Context(), thread, task)
		}
	default:
		err = m.append(m.change(thread, task))
	}
	if err != nil {
		m.not++
		return false
	}
	m.done++
	return true
}

func (m *model) change(thread, task string) outbox.Change {
	text := fmt.Sprint(m.random.Uint64())
	c := outbox.Change{Thread: thread, At: time.UnixMilli(9)}
	if m.random.IntN(2) == 0 {
		c.Task, c.Record = task, []byte("record "+text)
	}
	if m.random.IntN(2) == 0 || c.Task == "" {
		c.Data = []byte("entry " + text)
		if m.random.IntN(50) == 0 {
			c.Data = bytes.Repeat([]byte(text), 60_000)
		}
		if m.random.IntN(2) == 0 {
			c.Key = task
		}
	}
	return c
}

func (m *model) append(c outbox.Change) error {
	seq, err := m.s.Append(m.t.Context(), c)
	if err != nil {
		return err
	}
	want, err := m.memory.Append(m.t.Context(), c)
	if err != nil || (seq == 0) != (want == 0) || seq != 0 && seq <= m.greatest {
		m.t.Errorf("appended as %d after %d, the memory says %d, %v", seq, m.greatest, want, err)
	}
	if seq != 0 {
		m.numbers[seq], m.greatest = want, seq
	}
	return nil
}

// compare checks that a store has what the memory has.
func (m *model) compare(s outbox.Store) {
	m.t.Helper()
	for i := range modelThreads {
		thread := fmt.Sprint("thread", i)
		got, err := s.Pending(m.t.Context(), thread, 0, 1000)
		want, _ := m.memory.Pending(m.t.Context(), thread, 0, 1000)
		if err != nil || !slices.EqualFunc(got, want, func(a, b outbox.Entry) bool {
			return m.numbers[a.Seq] == b.Seq && bytes.Equal(a.Data, b.Data) && a.At.Equal(b.At)
		}) {
			m.t.Fatalf("%s has %d entries, want %d, or others; %v", thread, len(got), len(want), err)
		}
		records, err := s.Records(m.t.Context(), thread)
		known, _ := m.memory.Records(m.t.Context(), thread)
		if err != nil || !maps.EqualFunc(records, known, bytes.Equal) {
			m.t.Fatalf("%s has records %.200q, want %.200q; %v", thread, records, known, err)
		}
	}
}

// TestModel does things at random, and loses answers at random, for longer than the store has patience too: what it says to have done
// is all that it has done, now and when it is opened again.
func TestModel(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	mailbox, line := servertest.OnLine(t, 4*time.Second)
	m := &model{t: t, s: open(t, mailbox), memory: outbox.NewMemory(), random: rand.New(rand.NewPCG(seed, 0)), numbers: map[uint64]uint64{}}
	const rounds, steps = 2, 150
	for range rounds {
		for range steps {
			m.step()
		}
		m.compare(m.s)
		line.Hiccup(func() { m.step() })
		line.Cut()
		var wg sync.WaitGroup
		for i := range 6 {
			c := m.change(fmt.Sprint("thread", i%modelThreads), "lost")
			c.Key = "" // it would have to be the first
			wg.Go(func() {
				if _, err := m.s.Append(t.Context(), c); err == nil {
					t.Error("appended without an answer")
				}
			})
		}
		wg.Wait()
		line.Heal()
		m.compare(m.s)
		for i := range modelThreads { // whoever writes next sees to what was lost
			for m.append(outbox.Change{Thread: fmt.Sprint("thread", i), Data: []byte("next")}) != nil {
				if t.Context().Err() != nil {
					t.FailNow()
				}
			}
		}
		m.compare(m.s)
		m.s = open(t, mailbox)
		m.compare(m.s)
	}
	t.Logf("seed %d: %d done, %d not", seed, m.done, m.not)
	if m.done < rounds*steps/2 {
		t.Errorf("%d steps of %d: the test shows nothing", m.done, rounds*steps)
	}
}

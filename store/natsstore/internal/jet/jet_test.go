package jet_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

func TestMain(m *testing.M) { os.Exit(servertest.Main(m)) }

// stream makes one of a name that is new.
func stream(t *testing.T, change ...func(*natsstore.Config)) (s *jet.Stream, name string) {
	t.Helper()
	link := servertest.Open(t, change...).Link()
	name = link.Name + "-test"
	s, err := link.Open(t.Context(), "the test", jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}})
	if err != nil {
		t.Fatal(err)
	}
	return s, name
}

func put(t *testing.T, s *jet.Stream, subject string, data []byte) jet.Ref {
	t.Helper()
	r, err := s.Put(t.Context(), &nats.Msg{Subject: subject, Data: data}, func() *nats.Msg { return nats.NewMsg(subject + ".p." + uuid.NewString()) })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Records of any length come back, by number, by subject and all in turn.
func TestLong(t *testing.T) {
	t.Parallel()
	s, name := stream(t)
	var want [][]byte
	for i, n := range []int{0, 1, jet.PieceSize, jet.PieceSize + 1, 3 * jet.PieceSize, 6*jet.PieceSize - 1} {
		data := bytes.Repeat([]byte{byte('a' + i)}, n)
		want = append(want, data)
		r := put(t, s, name+".x", data)
		got, err := s.At(t.Context(), r.Seq)
		last, found, err2 := s.Last(t.Context(), name+".x")
		next, _, err3 := s.Next(t.Context(), name+".x", r.First())
		if err := errors.Join(err, err2, err3); err != nil || !found || !bytes.Equal(got, data) || !bytes.Equal(last.Data, data) || !bytes.Equal(next.Data, data) {
			t.Errorf("%d bytes came back as %d, %d and %d (%v)", n, len(got), len(last.Data), len(next.Data), err)
		}
		if pieces := (n - 1) / jet.PieceSize; n > jet.PieceSize && len(r.Parts) != pieces+1 {
			t.Errorf("%d bytes have %d pieces", n, len(r.Parts))
		}
	}
	i := 0
	err := s.Each(t.Context(), name+".x", func(r jet.Record) error {
		if i >= len(want) || !bytes.Equal(r.Data, want[i]) {
			t.Errorf("record %d has %d bytes", i, len(r.Data))
		}
		i++
		return nil
	})
	if err != nil || i != len(want) {
		t.Errorf("%d records of %d, %v", i, len(want), err)
	}
}

// Records that are begun are written in their order, whoever waits for which first, and fail as those do that are put.
func TestBegin(t *testing.T) {
	t.Parallel()
	s, name := stream(t)
	begin := func(ctx context.Context, n int, options ...jetstream.PublishOpt) func() (jet.Ref, error) {
		subject := name + ".x"
		msg := &nats.Msg{Subject: subject, Data: bytes.Repeat([]byte("x"), n), Header: nats.Header{}}
		return s.Begin(ctx, msg, func() *nats.Msg { return nats.NewMsg(subject + ".p." + uuid.NewString()) }, options...)
	}
	const most = 20
	var waits []func() (jet.Ref, error)
	for i := range most {
		waits = append(waits, begin(t.Context(), i))
	}
	for i := most - 1; i >= 0; i-- {
		r, err := waits[i]()
		if err != nil {
			t.Fatal(err)
		}
		if data, err := s.At(t.Context(), r.Seq); err != nil || len(data) != i || r.Seq != uint64(i)+1 { //nolint:gosec // it is small
			t.Errorf("record %d is at %d, with %d bytes (%v)", i, r.Seq, len(data), err)
		}
	}
	const long = 2*jet.PieceSize + 1
	r, err := begin(t.Context(), long)()
	if last, found, err2 := s.Last(t.Context(), name+".x"); errors.Join(err, err2) != nil || !found || len(last.Data) != long || len(r.Parts) != 3 {
		t.Errorf("%d bytes came back as %d, in %d pieces (%v, %v)", long, len(last.Data), len(r.Parts), err, err2)
	}
	if _, err := begin(t.Context(), 1, jetstream.WithExpectLastSequencePerSubject(1))(); !jet.Overtaken(err) {
		t.Errorf("a record behind an old one gives %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := begin(over, 1)(); !errors.Is(err, context.Canceled) {
		t.Errorf("a record of who has given up gives %v", err)
	}
}

// A record of which a piece is missing is not passed over.
func TestMissingPiece(t *testing.T) {
	t.Parallel()
	for _, pieces := range []int{2, 5} {
		s, name := stream(t)
		r := put(t, s, name+".x", make([]byte, pieces*jet.PieceSize))
		if err := s.DeleteMsg(t.Context(), r.Parts[1]); err != nil {
			t.Fatal(err)
		}
		err := s.Each(t.Context(), name+".x", func(jet.Record) error { return nil })
		if err == nil || !strings.Contains(err.Error(), "a piece of it is missing") {
			t.Errorf("each: %v", err)
		}
		if _, err := s.At(t.Context(), r.Seq); !errors.Is(err, jet.ErrGone) {
			t.Errorf("at: %v", err)
		}
	}
}

// Reading goes on while records are written and dropped, in order, and misses none that stays.
func TestEachWhileRecordsGo(t *testing.T) {
	t.Parallel()
	s, name := stream(t)
	const kept, passing = 400, 1200
	for i := range kept {
		put(t, s, fmt.Sprintf("%s.kept.%d", name, i%7), nil)
	}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for range passing / 2 {
				r, err := s.Put(t.Context(), nats.NewMsg(name+".passing"), nil)
				if err == nil {
					err = s.DeleteMsg(t.Context(), r.Seq)
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 20 {
		last, got := uint64(0), 0
		err := s.Each(t.Context(), name+".>", func(r jet.Record) error {
			if r.Seq <= last {
				t.Errorf("record %d came after %d", r.Seq, last)
			}
			if last = r.Seq; strings.HasPrefix(r.Subject, name+".kept.") {
				got++
			}
			return nil
		})
		if err != nil || got != kept {
			t.Errorf("%d records of %d, %v", got, kept, err)
		}
	}
	wg.Wait()
}

// Latest lists each subject once, by its latest record.
func TestLatest(t *testing.T) {
	t.Parallel()
	s, name := stream(t)
	if all, err := s.Latest(t.Context(), name+".*.l"); err != nil || len(all) != 0 {
		t.Errorf("%d records, %v", len(all), err)
	}
	want := map[string]uint64{}
	for i := range 600 {
		subject := fmt.Sprintf("%s.%d.l", name, i*i%211)
		want[subject] = put(t, s, subject, []byte("data")).Seq
		put(t, s, fmt.Sprintf("%s.%d.other", name, i), nil)
	}
	all, err := s.Latest(t.Context(), name+".*.l")
	if err != nil || len(all) != len(want) {
		t.Fatalf("%d records, want %d, %v", len(all), len(want), err)
	}
	last := uint64(0)
	for _, r := range all {
		if r.Seq <= last || want[r.Subject] != r.Seq {
			t.Errorf("%s is %d after %d, want %d", r.Subject, r.Seq, last, want[r.Subject])
		}
		last = r.Seq
	}
	subjects, err := s.Subjects(t.Context(), name+".*.l")
	if err != nil || len(subjects) != len(want) {
		t.Errorf("%d subjects, want %d, %v", len(subjects), len(want), err)
	}
}

// Tokens are words of a subject, and differ when ids do.
func TestToken(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{"", "a", "A", "=", "~", ".", "*", ">", "a.b", "\x00\xff", strings.Repeat("x", 128), strings.Repeat("x", 129), strings.Repeat("x", 130)} {
		token := jet.Token(id)
		if other, known := seen[token]; known {
			t.Errorf("%q and %q are both %s", id, other, token)
		}
		seen[token] = id
		if token == "" || strings.ContainsAny(token, ".*> \t\r\n\x00") || len(token) > 200 {
			t.Errorf("%q is %q", id, token)
		}
		if back, ok := jet.Untoken(token); ok != (len(id) <= 128) || ok && back != id {
			t.Errorf("%q came back as %q, %v", id, back, ok)
		}
	}
}

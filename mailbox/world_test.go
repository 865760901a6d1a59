package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a runtime that does what a test wants, and remembers its jobs.
type script struct {
	mu   sync.Mutex
	jobs []*mailbox.Job
	busy map[string]int
	do   func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error)
	// steer takes requests under way, if it is set.
	steer func(run string, r mailbox.Request) bool
}

func (s *script) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	s.mu.Lock()
	s.jobs = append(s.jobs, j)
	if s.busy == nil {
		s.busy = map[string]int{}
	}
	s.busy[j.Dispatch.Thread]++
	twice := s.busy[j.Dispatch.Thread] > 1
	do := s.do
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy[j.Dispatch.Thread]--
	}()
	if twice {
		return mailbox.Result{}, errors.New("two executions of one thread at once")
	}
	if do == nil {
		return mailbox.Result{Termination: "natural", Response: "done"}, nil
	}
	return do(ctx, j)
}

func (s *script) Steer(_ context.Context, run, _ string, r mailbox.Request) bool {
	return s.steer != nil && s.steer(run, r)
}

// ran lists the first message of each execution.
func (s *script) ran() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, j := range s.jobs {
		out = append(out, string(j.Request.Messages[0].Data))
	}
	return out
}

func (s *script) wantRan(t *testing.T, want ...string) {
	t.Helper()
	if got := s.ran(); !slices.Equal(got, want) {
		t.Errorf("ran %q, want %q", got, want)
	}
}

// open makes a mailbox that is closed at the end of the test.
func open(t *testing.T, cfg mailbox.Config) *mailbox.Mailbox {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = memstore.New()
	}
	m, err := mailbox.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return m
}

func started(t *testing.T, cfg mailbox.Config) *mailbox.Mailbox {
	t.Helper()
	m := open(t, cfg)
	must(t, m.Start(t.Context()))
	return m
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func request(thread, text string) mailbox.Request {
	return mailbox.Request{Thread: thread, Messages: []mailbox.Input{{Data: []byte(text)}}}
}

func background(t *testing.T, m *mailbox.Mailbox, r mailbox.Request) mailbox.Submission {
	t.Helper()
	sub, err := m.SubmitBackground(t.Context(), r)
	must(t, err)
	return sub
}

// wantStatus checks where a dispatch stands.
func wantStatus(t *testing.T, m *mailbox.Mailbox, dispatch string, want mailbox.Status) mailbox.Dispatch {
	t.Helper()
	d, found, err := m.Dispatch(t.Context(), dispatch)
	must(t, err)
	if !found || d.Status != want {
		t.Errorf("dispatch is %q (found %v, attempts %d, error %q), want %q", d.Status, found, d.Attempts, d.LastError, want)
	}
	return d
}

func wantRun(t *testing.T, m *mailbox.Mailbox, run string, status mailbox.RunStatus, termination string) mailbox.Run {
	t.Helper()
	r, found, err := m.Run(t.Context(), run)
	must(t, err)
	if !found || r.Status != status || r.Termination != termination {
		t.Errorf("run is %q, %q (found %v, error %q), want %q, %q", r.Status, r.Termination, found, r.Error, status, termination)
	}
	return r
}

// events reads a feed to its end.
func events(t *testing.T, s *mailbox.Feed) []string {
	t.Helper()
	var out []string
	for seq := uint64(0); ; {
		e, err := s.Next(t.Context(), seq)
		if errors.Is(err, mailbox.ErrEnd) {
			return out
		}
		must(t, err)
		seq = e.Seq
		out = append(out, fmt.Sprintf("%d:%s:%s", e.Seq, e.Type, e.Data))
	}
}

var _ = mailboxtest.FaultNone

package recordstore_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/recordstore"
)

func start(run string) record.Start {
	return record.Start{Run: abi.RunIdentity{ThreadID: "t", RunID: run}}
}

// A line whose acknowledgement was lost is there once.
func TestLostAcknowledgement(t *testing.T) {
	t.Parallel()
	mailbox, line := servertest.OnLine(t, time.Minute)
	s := open(t, mailbox, record.Config{})
	if err := s.Start(start("r")); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		line.Hiccup(func() {
			if err := s.Add("r", record.Entry{Step: i}); err != nil {
				t.Error(err)
			}
		})
	}
	r, err := s.Load("r")
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range r.Entries {
		if e.Step != i || len(r.Entries) != 3 {
			t.Errorf("entry %d of %d is %d", i, len(r.Entries), e.Step)
		}
	}
}

// A call says that nobody answers, and a run that could not be started takes no entries.
func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	mailbox, line := servertest.OnLine(t, 4*time.Second)
	s := open(t, mailbox, record.Config{})
	line.Cut()
	var wg sync.WaitGroup
	for name, call := range map[string]func() error{
		"start": func() error { return s.Start(start("r")) },
		"list":  func() error { _, err := s.List(1); return err },
		"load":  func() error { _, err := s.Load("r"); return err },
	} {
		wg.Go(func() {
			if err := call(); err == nil || errors.Is(err, record.ErrUnknown) || !strings.Contains(err.Error(), "no server answered in time") {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	wg.Wait()
	if err := s.Add("r", record.Entry{}); err != nil {
		t.Error(err)
	}
}

// Nothing is left of records that went, and Look removes none.
func TestPruned(t *testing.T) {
	t.Parallel()
	mailbox := servertest.Open(t)
	s := open(t, mailbox, record.Config{})
	for i := range 5 {
		run := fmt.Sprint("r", i)
		err := errors.Join(s.Start(start(run)), s.Add(run, record.Entry{Error: strings.Repeat("x", 2<<20)}), s.End(run, record.End{}))
		if err != nil {
			t.Fatal(err)
		}
	}
	look, err := recordstore.Look(t.Context(), mailbox)
	if err != nil {
		t.Fatal(err)
	}
	if list, err := look.List(10); err != nil || len(list) != 5 {
		t.Errorf("%d runs, %v", len(list), err)
	}
	open(t, mailbox, record.Config{Keep: 1})
	if list, err := look.List(10); err != nil || len(list) != 1 || list[0].ID != "r4" {
		t.Errorf("runs %+v, %v", list, err)
	}
	const each = 3 + 5 // lines and pieces
	if info, err := servertest.Stream(t, mailbox.Link().Name+"-records").Info(t.Context()); err != nil || info.State.Msgs != each {
		t.Errorf("%d messages are left, want %d; %v", info.State.Msgs, each, err)
	}
}

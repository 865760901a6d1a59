package recordstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/recordstore"
)

// TestLeaderCutOff holds that nobody is told by a leader that is cut off which records there are and what is in them, and that none is
// removed by that.
func TestLeaderCutOff(t *testing.T) {
	t.Parallel()
	servertest.CutOff(t, "-records", func(mailbox *natsstore.Store) {
		s := open(t, mailbox, record.Config{})
		if err := s.Start(start("run")); err != nil {
			t.Fatal(err)
		}
	}, func(mailbox *natsstore.Store) map[string]servertest.Question {
		s := open(t, mailbox, record.Config{})
		return map[string]servertest.Question{
			"list":      func() error { _, err := s.List(9); return err },
			"record":    func() error { _, err := s.Load("run"); return err },
			"no record": func() error { _, err := s.Load("nobody"); return err },
			"pruning":   func() error { _, err := recordstore.New(t.Context(), mailbox, record.Config{Keep: 1}); return err },
		}
	})
}

package sessionstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// TestLeaderCutOff holds that nobody goes on from what a leader says that is cut off, nor hears of a conflict or a refusal from it.
func TestLeaderCutOff(t *testing.T) {
	t.Parallel()
	var rev uint64
	servertest.CutOff(t, "-sessions", func(mailbox *natsstore.Store) {
		s := open(t, mailbox)
		if err := s.Append("t", message("m")); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var err error
			if rev, err = s.Swap("t", rev, compaction.State{Total: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}, func(mailbox *natsstore.Store) map[string]servertest.Question {
		s := open(t, mailbox)
		return map[string]servertest.Question{
			"log":     func() error { _, err := s.Log("t"); return err },
			"no log":  func() error { _, err := s.Log("nobody"); return err },
			"threads": func() error { _, err := s.Threads(); return err },
			"replacement of what is not there": func() error {
				return s.Replace("t", message("another"))
			},
			"conflict": func() error {
				_, err := s.Swap("t", rev-1, compaction.State{Total: 7})
				return err
			},
		}
	})
}

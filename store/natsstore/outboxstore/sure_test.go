package outboxstore_test

import (
	"testing"

	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/outboxstore"
)

// TestLeaderCutOff holds that an outbox does not begin with what a leader says that is cut off, nor takes a log for dropped by it.
func TestLeaderCutOff(t *testing.T) {
	t.Parallel()
	var first *outboxstore.Store
	seqs := map[string]uint64{}
	servertest.CutOff(t, "-outbox", func(mailbox *natsstore.Store) {
		first = open(t, mailbox)
		for _, thread := range []string{"before", "after"} {
			e := entry(thread)
			e.Thread = thread
			var err error
			if seqs[thread], err = first.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
	}, func(mailbox *natsstore.Store) map[string]servertest.Question {
		s := open(t, mailbox)
		for thread, seq := range seqs { // behind the back of s
			if err := first.Remove(t.Context(), thread, seq); err != nil {
				t.Fatal(err)
			}
		}
		threads := []string{"before", "after"} // of being cut off
		return map[string]servertest.Question{
			"beginning": func() error {
				_, err := outboxstore.New(t.Context(), mailbox, outboxstore.Config{})
				return err
			},
			"removal from a log that was dropped": func() error {
				thread := threads[0]
				threads = threads[1:]
				return s.Remove(t.Context(), thread, seqs[thread])
			},
		}
	})
}

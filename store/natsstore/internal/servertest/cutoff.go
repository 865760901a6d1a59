package servertest

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// Question is one that a leader which is cut off could answer with what was true before, be it by a refusal. It has no answer if the
// error is jet.ErrPatience.
type Question func() error

// CutOff holds that nobody gets an answer of a leader that is cut off. Prepare gets a mailbox, and ready the same one by the server
// that leads its stream of that suffix: it makes the questions, which are asked before it is cut off and after that.
func CutOff(t *testing.T, suffix string, prepare func(*natsstore.Store), ready func(*natsstore.Store) map[string]Question) {
	t.Helper()
	if testing.Short() {
		testskip.Skip(t, "no leader is cut off: it takes a cluster")
	}
	c := NewCluster(t)
	whole := Open(t, c.Config)
	prepare(whole)
	name := whole.Link().Name
	var questions map[string]Question
	c.Isolate(name+suffix, func(at string) {
		questions = ready(Open(t, c.Config, func(cfg *natsstore.Config) {
			cfg.Name, cfg.URL, cfg.Wait, cfg.Patience = name, at, time.Second, 3*time.Second
		}))
		for what, ask := range questions {
			if err := ask(); errors.Is(err, jet.ErrPatience) {
				t.Errorf("%s while all is well: %v", what, err)
			}
		}
	})
	var wg sync.WaitGroup
	for what, ask := range questions {
		wg.Go(func() {
			if err := ask(); !errors.Is(err, jet.ErrPatience) {
				t.Errorf("%s: the answer of a leader that is cut off was taken: %v", what, err)
			}
		})
	}
	wg.Wait()
}

package mailboxtest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/mortise-dev/mortise/store"
)

// Environment variables: the seed of the first schedule, and how many schedules there are
// instead of what a test of a store asks for.
const (
	modelSeed      = "MORTISE_TEST_MAILBOX_SEED"
	modelSchedules = "MORTISE_TEST_MAILBOX_SCHEDULES"
)

// How long a schedule is, how many share a store, and how many of those are played at once. Of two stores that take turns one share in
// modelAlone is played one by one: what one store remembers holds for longer then.
const (
	modelSteps   = 24
	modelShare   = 250
	modelPlayers = 8
	modelAlone   = 4
)

// TestModel runs random schedules of transitions, with answers of the store that get lost and others that come
// twice, and compares each answer and each state with those of a model in memory that was written apart. Each schedule
// has a thread of its own; several are played at once on one store, and when all of them have ended the listings of the
// store are compared with all models. A schedule that goes wrong is shortened and printed; its seed runs it again.
func TestModel(t *testing.T, open func(t *testing.T) (one, other store.Store), schedules int) {
	t.Helper()
	first := fromEnv(t, modelSeed, rand.Uint64())                                  //nolint:gosec // not a secret
	schedules = int(fromEnv(t, modelSchedules, uint64(schedules)) & math.MaxInt32) //nolint:gosec // not negative
	taken := &takings{of: map[action]int{}}
	t.Run("shares", func(t *testing.T) {
		for from := 0; from < schedules; from += modelShare {
			s := &share{next: first + uint64(from), end: first + uint64(min(from+modelShare, schedules)), taken: taken} //nolint:gosec // not negative
			alone := from/modelShare%modelAlone == 1
			all := t
			t.Run(fmt.Sprintf("from_%d", from), func(t *testing.T) {
				t.Parallel()
				if all.Failed() {
					return
				}
				s.one, s.other = open(t)
				if trouble := s.play(t.Context(), alone); trouble != "" {
					t.Error(trouble)
				}
			})
		}
	})
	for _, a := range actions() {
		if !t.Failed() && taken.played >= 1000 && taken.of[a] < taken.played/200 {
			t.Errorf("%s changed something in only %d steps of %d schedules", a, taken.of[a], taken.played)
		}
	}
	t.Logf("%d schedules of %d steps from %s=%d", schedules, modelSteps, modelSeed, first)
}

// LongModel reports whether the environment asks [TestModel] for another number of schedules.
func LongModel() bool { return os.Getenv(modelSchedules) != "" }

// fromEnv is a number of the environment, or otherwise.
func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

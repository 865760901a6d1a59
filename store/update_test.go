package store_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// failing is a store whose Apply returns one error after the other.
type failing struct {
	store.Store
	errs []error
}

func (f *failing) Apply(context.Context, store.Batch) (uint64, error) {
	err := f.errs[0]
	if f.errs = f.errs[1:]; err != nil {
		return 0, err
	}
	return 7, nil
}

// TestApplySurely_outcome holds that an outcome is unknown after a failure that may have changed something, and only then.
func TestApplySurely_outcome(t *testing.T) {
	t.Parallel()
	lost := errors.New("no answer")
	down := store.NotApplied(errors.New("not reached"))
	for name, c := range map[string]struct {
		errs    []error
		want    error
		unknown bool
	}{
		"down":                      {errs: []error{down, down, down, down}, want: down},
		"lost once":                 {errs: []error{down, lost, down, down}, want: down, unknown: true},
		"lost at last":              {errs: []error{down, down, down, lost}, want: lost, unknown: true},
		"refused":                   {errs: []error{store.ErrConflict}, want: store.ErrConflict},
		"refused after it was down": {errs: []error{down, store.ErrExists}, want: store.ErrExists},
		"refused after a loss":      {errs: []error{lost, store.ErrExists}, want: store.ErrExists, unknown: true},
		"back":                      {errs: []error{down, lost, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				revision, err := store.ApplySurely(t.Context(), &failing{errs: c.errs}, store.Batch{Thread: "t"})
				if !errors.Is(err, c.want) || errors.Is(err, store.ErrOutcomeUnknown) != c.unknown || (err == nil) != (revision == 7) {
					t.Errorf("got %d, %v", revision, err)
				}
			})
		})
	}
}

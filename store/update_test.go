package store_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
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

// pages is a store whose index has these many places, and that notes how many were asked for at a time.
type pages struct {
	store.Store

	places int
	asked  []int
}

func (p *pages) Scan(_ context.Context, s store.Scan) (out []store.Ref, err error) {
	p.asked = append(p.asked, s.Limit)
	from, _ := strconv.Atoi(s.After.Key)
	for i := from + 1; i <= min(p.places, from+s.Limit); i++ {
		out = append(out, store.Ref{Key: strconv.Itoa(i)})
	}
	return out, nil
}

// TestRefs holds that all places come, in their order, and that pages grow.
func TestRefs(t *testing.T) {
	t.Parallel()
	p := &pages{places: 40}
	n := 0
	for ref, err := range store.Refs(t.Context(), p, store.Scan{Limit: 10}) {
		n++
		if err != nil || ref.Key != strconv.Itoa(n) {
			t.Fatalf("place %d is %q, %v", n, ref.Key, err)
		}
	}
	if n != 40 || !slices.Equal(p.asked, []int{10, 20, 40}) {
		t.Errorf("%d places, in pages of %d", n, p.asked)
	}
}

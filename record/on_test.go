package record_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func on(t *testing.T, s store.Store, cfg record.Config) *record.Runs {
	t.Helper()
	r, err := record.On(t.Context(), s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func started(t *testing.T, r *record.Runs, run string) {
	t.Helper()
	if err := r.Start(record.Start{Run: abi.RunIdentity{RunID: run}}); err != nil {
		t.Fatal(err)
	}
}

func newest(t *testing.T, r *record.Runs) string {
	t.Helper()
	known, err := r.List(2)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, k := range known {
		ids = append(ids, k.ID)
	}
	return strings.Join(ids, " ")
}

// A store that was opened to read removes nothing and takes nothing.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	started(t, on(t, s, record.Config{}), "r")
	r := record.ReadOnly(s)
	if err := r.Start(record.Start{Run: abi.RunIdentity{RunID: "new"}}); err == nil || !strings.Contains(err.Error(), "opened to read") {
		t.Errorf("start: %v", err)
	}
	if got := newest(t, r); got != "r" {
		t.Errorf("runs %s", got)
	}
	if _, err := record.On(t.Context(), s, record.Config{Keep: -1}); err == nil || !strings.Contains(err.Error(), "Config.Keep -1") {
		t.Errorf("a wrong config: %v", err)
	}
}

// A record that is removed while its run continues takes no more.
func TestOn_removedMeanwhile(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	r := on(t, s, record.Config{})
	started(t, r, "old")
	started(t, r, "new")
	other := on(t, s, record.Config{Keep: 1})
	if err := errors.Join(r.Add("old", record.Entry{}), r.End("old", record.End{})); err != nil {
		t.Error(err)
	}
	if got := newest(t, other); got != "new" {
		t.Errorf("runs %s", got)
	}
	if left, err := s.Count(t.Context(), "record"); err != nil || left[""] != 1 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// hooked is a store that calls a function after each listing.
type hooked struct {
	store.Store
	listed func()
}

func (h hooked) Scan(ctx context.Context, q store.Scan) ([]store.Ref, error) {
	defer h.listed()
	return h.Store.Scan(ctx, q)
}

// A record that is written to while old ones are removed stays.
func TestOn_resumedMeanwhile(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	r := on(t, s, record.Config{})
	started(t, r, "old")
	started(t, r, "new")
	on(t, hooked{Store: s, listed: func() {
		if err := r.Add("old", record.Entry{}); err != nil {
			t.Error(err)
		}
	}}, record.Config{Keep: 1})
	if got := newest(t, r); got != "old new" {
		t.Errorf("runs %s", got)
	}
}

// More runs than are listed at a time are found by the beginnings of their ids, and removed.
func TestOn_manyRuns(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	r := on(t, s, record.Config{})
	started(t, r, "first")
	for i := range 1100 {
		started(t, r, fmt.Sprint("b-", i))
	}
	if run, err := r.Load("fi"); err != nil || run.ID() != "first" {
		t.Errorf("got %+v, %v", run, err)
	}
	if _, err := r.Load("b-"); !errors.Is(err, record.ErrAmbiguous) || !strings.Contains(err.Error(), "b-1099") {
		t.Errorf("got %v", err)
	}
	if err := r.Add("first", record.Entry{}); err != nil {
		t.Fatal(err)
	}
	if got := newest(t, on(t, s, record.Config{Keep: 2})); got != "first b-1099" {
		t.Errorf("runs %s", got)
	}
	if left, err := s.Count(t.Context(), "record"); err != nil || left[""] != 2 {
		t.Errorf("%v are left, %v", left, err)
	}
}

// What cannot be read is left out of a list, and removed as any other record.
func TestOn_damaged(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	r := on(t, s, record.Config{})
	started(t, r, "good")
	_, err := s.Apply(t.Context(), store.Batch{
		Thread: "\xffrecord/bad",
		Put:    []store.Cell{{Kind: "record", Value: []byte("{"), Index: []store.IndexKey{{Name: "record", Key: store.Number(0)}}}},
		Append: []store.Entry{{Log: "record", Data: []byte("{}")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := newest(t, r); got != "good" {
		t.Errorf("runs %s", got)
	}
	if _, err := r.Load("bad"); err == nil || !strings.Contains(err.Error(), "not a record of the format") {
		t.Errorf("got %v", err)
	}
	on(t, s, record.Config{Keep: 1})
	if _, err := r.Load("bad"); !errors.Is(err, record.ErrUnknown) {
		t.Errorf("got %v", err)
	}
}

package state_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/phases/state"
)

func TestExtend(t *testing.T) {
	t.Parallel()
	one, two := set("p/excl", 1), add("p/comm", 2)
	tests := map[string]struct {
		left, right, want state.Batch
		err               string
	}{
		"both without a base": {left: batch(one), right: batch(two), want: batch(one, two)},
		"left base only":      {left: based(3, one), right: batch(two), want: based(3, one, two)},
		"right base only":     {left: batch(one), right: based(3, two), want: based(3, one, two)},
		"same base":           {left: based(3, one), right: based(3, one), want: based(3, one, one)},
		"mismatch":            {left: based(3, one), right: based(4, two), err: "patch base revision mismatch: 3 vs 4"},
		"empty":               {left: batch(), right: batch(one), want: batch(one)},
		"both empty":          {},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.left.Extend(test.right)
			checkBatch(t, got, test.want, err, test.err)
		})
	}
	a, _ := batch(one).Extend(batch(two))
	b, err := a.Extend(batch(one))
	checkBatch(t, b, batch(one, two, one), err, "")
	if got := b.Keys(); !reflect.DeepEqual(got, []string{"p/excl", "p/comm"}) {
		t.Errorf("keys %v: each once, first seen first", got)
	}
}

func checkBatch(t *testing.T, got, want state.Batch, err error, text string) {
	t.Helper()
	if text != "" {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v, want one with %q", err, text)
		}
		return
	}
	if err != nil || !reflect.DeepEqual(got.Keys(), want.Keys()) || len(got.Updates) != len(want.Updates) || !reflect.DeepEqual(got.Base, want.Base) {
		t.Fatalf("%+v, %v, want %+v", got, err, want)
	}
	for i := range want.Updates {
		if !reflect.DeepEqual(got.Updates[i], want.Updates[i]) {
			t.Errorf("update %d is %+v, want %+v", i, got.Updates[i], want.Updates[i])
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	s := build(t)
	x, k, c, d := set("p/excl", 1), set("p/kept", 1), add("p/comm", 1), add("p/comm", 2)
	tests := map[string]struct {
		left, right, want state.Batch
		err               string
	}{
		"disjoint":                    {left: batch(x), right: batch(k), want: batch(x, k)},
		"exclusive":                   {left: batch(x), right: batch(x), err: "exclusive key: p/excl"},
		"commutative, in order":       {left: batch(c), right: batch(d), want: batch(c, d)},
		"set on a commutative key":    {left: batch(c), right: batch(set("p/comm", 3)), err: "exclusive key: p/comm"},
		"mixed":                       {left: batch(x, c), right: batch(d, k), want: batch(x, c, d, k)},
		"one exclusive key stops all": {left: batch(c, x), right: batch(d, k, x), err: "exclusive key: p/excl"},
		"the first of two is named":   {left: batch(k, x), right: batch(x, k), err: "exclusive key: p/kept"},
		"unknown keys are exclusive":  {left: batch(set("no/key", 1)), right: batch(add("no/key", 1)), err: "exclusive key: no/key"},
		"empty":                       {left: batch(), right: batch(x), want: batch(x)},
		"a base is kept":              {left: based(2, x), right: based(2, k), want: based(2, x, k)},
		"one base":                    {left: batch(x), right: based(2, k), want: based(2, x, k)},
		"two bases":                   {left: based(1, x), right: based(2, k), err: "patch base revision mismatch: 1 vs 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := merge(s, test.left, test.right)
			checkBatch(t, got, test.want, err, test.err)
		})
	}
	// Three and four ways.
	all := batch(x)
	var err error
	for _, next := range []state.Batch{batch(c), batch(d, k), batch(c)} {
		if all, err = merge(s, all, next); err != nil {
			t.Fatal(err)
		}
	}
	checkBatch(t, all, batch(x, c, d, k, c), nil, "")
	if _, err := merge(s, all, batch(k)); err == nil {
		t.Error("the fifth was merged")
	}
}

// merge puts two batches together that were made side by side.
func merge(s *state.Store, b, other state.Batch) (state.Batch, error) {
	if key, ok := s.Overlap(b, other); ok {
		return b, fmt.Errorf("exclusive key: %s", key)
	}
	return b.Extend(other)
}

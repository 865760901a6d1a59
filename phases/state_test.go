package phases_test

import (
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

type (
	list   = []any
	fields = map[string]any
)

func TestOperations(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		old, operand any
		op           abi.Op
		want         any
		err          string
	}{
		"set":               {old: int64(1), op: abi.OpSet, operand: "x", want: "x"},
		"set normalises":    {op: abi.OpSet, operand: list{1, uint8(2), float32(0.5)}, want: list{int64(1), int64(2), 0.5}},
		"merge":             {old: fields{"a": int64(1), "b": int64(2)}, op: abi.OpMerge, operand: fields{"b": int64(3)}, want: fields{"a": int64(1), "b": int64(3)}},
		"merge on nothing":  {op: abi.OpMerge, operand: fields{"b": true}, want: fields{"b": true}},
		"append":            {old: list{"a"}, op: abi.OpAppend, operand: list{"b", "c"}, want: list{"a", "b", "c"}},
		"append on nothing": {op: abi.OpAppend, operand: list{"b"}, want: list{"b"}},
		"add":               {old: int64(2), op: abi.OpAdd, operand: int64(-5), want: int64(-3)},
		"add zero":          {old: int64(2), op: abi.OpAdd, operand: int64(0), want: int64(2)},
		"add on nothing":    {op: abi.OpAdd, operand: 0.5, want: 0.5},
		"add mixed":         {old: int64(2), op: abi.OpAdd, operand: 0.5, want: 2.5},
		"remove fields":     {old: fields{"a": int64(1), "b": int64(2)}, op: abi.OpRemove, operand: list{"a", "z"}, want: fields{"b": int64(2)}},
		"remove elements":   {old: list{"a", list{"x"}, "a", int64(1)}, op: abi.OpRemove, operand: list{"a", list{"x"}}, want: list{int64(1)}},
		"remove nothing":    {op: abi.OpRemove, operand: list{"a"}, want: nil},

		"unknown op":           {op: "multiply", operand: int64(2), err: `operation "multiply"`},
		"merge with number":    {op: abi.OpMerge, operand: int64(2), err: "merge takes a map, not a number"},
		"merge into list":      {old: list{"a"}, op: abi.OpMerge, operand: fields{}, err: "it is a list"},
		"append with text":     {op: abi.OpAppend, operand: "x", err: "append takes a list, not text"},
		"append to map":        {old: fields{}, op: abi.OpAppend, operand: list{"x"}, err: "it is a map"},
		"add text":             {op: abi.OpAdd, operand: "x", err: "add takes a number, not text"},
		"add to bool":          {old: true, op: abi.OpAdd, operand: int64(1), err: "it is a bool"},
		"add overflow":         {old: int64(math.MaxInt64), op: abi.OpAdd, operand: int64(1), err: "add overflows"},
		"add underflow":        {old: int64(math.MinInt64), op: abi.OpAdd, operand: int64(-1), err: "add overflows"},
		"add float overflow":   {old: math.MaxFloat64, op: abi.OpAdd, operand: math.MaxFloat64, err: "add overflows"},
		"remove with text":     {old: fields{}, op: abi.OpRemove, operand: "x", err: "remove takes a list"},
		"remove numbered name": {old: fields{}, op: abi.OpRemove, operand: list{int64(1)}, err: "remove takes names of fields"},
		"remove from text":     {old: "x", op: abi.OpRemove, operand: list{"x"}, err: "it is text"},
		"not a number":         {op: abi.OpSet, operand: math.NaN(), err: "cannot be stored"},
		"foreign type":         {op: abi.OpSet, operand: struct{}{}, err: "a value of type struct {} cannot be stored"},
		"large number":         {op: abi.OpSet, operand: uint64(math.MaxUint64), err: "cannot be stored"},
		"too large":            {op: abi.OpSet, operand: strings.Repeat("x", 2000), err: "larger than the 1000 bytes"},
		"too many":             {op: abi.OpSet, operand: make(list, 200), err: "larger than the 1000 bytes"},
		"too large after":      {old: strings2(5), op: abi.OpAppend, operand: strings2(5), err: "would be larger than the 1000 bytes"},
		"too deep":             {op: abi.OpSet, operand: deep(40), err: "nested deeper"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := plug("p", abi.Hook{Phase: abi.BeforeInference}, updates(abi.Update{Key: "kept", Op: test.op, Value: test.operand}))
			g := build(t, phases.Config{Limits: phases.Limits{StateValueBytes: 1000}}, p)
			if test.old != nil {
				g.state = g.NewState(fields{"p/kept": test.old})
			}
			g.fire(t, step(1))
			rec := g.only(t, "p")
			if test.err == "" {
				if rec.Err != "" {
					t.Fatal(rec.Err)
				}
				g.wantState(t, "p/kept", test.want)
				return
			}
			if len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, test.err) {
				t.Errorf("refused %+v, want a reason with %q", rec.Refused, test.err)
			}
			g.wantState(t, "p/kept", test.old)
			if got := g.state.Revision(); got != 0 {
				t.Errorf("revision %d after a refused reply", got)
			}
		})
	}
}

func strings2(n int) list {
	out := make(list, n)
	for i := range out {
		out[i] = strings.Repeat("x", 100)
	}
	return out
}

func deep(n int) any {
	var v any = "x"
	for range n {
		v = list{v}
	}
	return v
}

func TestStateScopes(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, updates(
		abi.Update{Key: "kept", Op: abi.OpAdd, Value: 1},
		abi.Update{Key: "excl", Op: abi.OpAdd, Value: 1},
	))
	g := build(t, phases.Config{}, p)
	odd := struct{ n int }{7}
	g.state = g.NewState(fields{"p/kept": int64(4), "p/excl": int64(9), "gone/x": "theirs", "gone/odd": odd})
	g.wantState(t, "p/excl", nil) // declared for the run, so it starts anew
	g.fire(t, step(1))
	g.fire(t, step(1))
	g.wantState(t, "p/kept", int64(6))
	g.wantState(t, "p/excl", int64(2))
	if got := g.state.Revision(); got != 2 {
		t.Errorf("revision %d after two phases, want 2", got)
	}
	want := fields{"p/kept": int64(6), "gone/x": "theirs", "gone/odd": odd}
	if got := g.state.Export(); !reflect.DeepEqual(got, want) {
		t.Errorf("export %v, want %v", got, want)
	}
	if got := p.Events()[1].State; !reflect.DeepEqual(got, fields{"kept": int64(5), "excl": int64(1)}) {
		t.Errorf("the second event holds the state %v", got)
	}
}

// A value that plugins may not see is kept until a hook writes the key.
func TestStateRawValue(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, updates(abi.Update{Key: "kept", Op: abi.OpAdd, Value: 1}))
	g := build(t, phases.Config{}, p)
	g.state = g.NewState(fields{"p/kept": struct{}{}})
	g.fire(t, step(1))
	if got := p.Events()[0].State; got != nil {
		t.Errorf("the plugin saw %v", got)
	}
	g.wantState(t, "p/kept", int64(1))
}

// Removing nested elements takes the product of two lengths, so that is bounded.
func TestRemoveIsBounded(t *testing.T) {
	t.Parallel()
	nested := make(list, 2000)
	for i := range nested {
		nested[i] = list{}
	}
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, updates(abi.Update{Key: "kept", Op: abi.OpRemove, Value: nested}))
	g := build(t, phases.Config{}, p)
	g.state = g.NewState(fields{"p/kept": nested})
	g.fire(t, step(1))
	if rec := g.only(t, "p"); len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, "too many") {
		t.Errorf("refused %+v", rec.Refused)
	}
}

// What a plugin does to its reply afterwards changes nothing.
func TestStateIsCopied(t *testing.T) {
	t.Parallel()
	inner := fields{"b": int64(1)}
	mine := list{"a", inner}
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, updates(abi.Update{Key: "excl", Op: abi.OpSet, Value: mine}))
	g := build(t, phases.Config{}, p)
	g.fire(t, step(1))
	mine[0] = "changed"
	inner["b"] = "changed"
	g.wantState(t, "p/excl", list{"a", fields{"b": int64(1)}})
}

// Values that were read stay as they are, whatever is committed later.
func TestStateCopyOnWrite(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.BeforeInference}, func(_ ctx, e *abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Updates: []abi.Update{
			{Key: "excl", Op: abi.OpAppend, Value: list{"x"}},
			{Key: "comm", Op: abi.OpMerge, Value: fields{strconv.Itoa(e.Step): true}},
		}}, nil
	})
	g := build(t, phases.Config{}, p)
	var lengths []int
	var read []list
	for i := range 5 {
		f := step(1)
		f.Step = i
		g.fire(t, f)
		v, _ := g.state.Read("p/excl")
		elements, _ := v.(list)
		read = append(read, elements)
		lengths = append(lengths, len(elements))
	}
	for i, v := range read {
		if len(v) != lengths[i] || lengths[i] != i+1 {
			t.Errorf("value %d has %d elements, want %d", i, len(v), i+1)
		}
	}
	for i, e := range p.Events() {
		if got, _ := e.State["excl"].(list); len(got) != i {
			t.Errorf("event %d holds %d elements, want %d", i, len(got), i)
		}
		if got, _ := e.State["comm"].(fields); len(got) != i {
			t.Errorf("event %d holds %d fields, want %d", i, len(got), i)
		}
	}
}

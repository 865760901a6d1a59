package lane

import (
	"encoding/json"
	"reflect"
	"slices"

	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/phases/state"
	"github.com/mortise-dev/mortise/proxy/money"
	proxywire "github.com/mortise-dev/mortise/proxy/wire"
)

// image is a state.Image on the wire.
type image struct {
	Revision int64          `json:"revision,omitempty"`
	Values   map[string]any `json:"values,omitempty"`
}

// Pack encodes the values of plugins. Integers, floats and bytes stay what they are.
func Pack(img state.Image) []byte {
	out := image{int64(img.Revision), img.Values} //nolint:gosec // counts from 0
	data, err := wire.MessagePack.Marshal(&out)
	if err != nil {
		return nil // they begin anew
	}
	return data
}

// Unpack reverses [Pack]. What cannot be read is no value.
func Unpack(data []byte) state.Image {
	var img image
	if len(data) == 0 || wire.MessagePack.Unmarshal(data, &img) != nil {
		return state.Image{}
	}
	return state.Image{Revision: uint64(img.Revision), Values: img.Values} //nolint:gosec // as above
}

// diverged reports whether two conversations went different ways: neither continues the other.
func diverged(a, b []proxywire.Hash) bool {
	n := min(len(a), len(b))
	return !slices.Equal(a[:n], b[:n])
}

// absorb takes in what another process has saved of a lane: what this one has changed since it read the lane stays, next to what the
// other one has.
func (l *Lane) absorb(theirs *State) {
	if l.acknowledged(theirs) {
		return
	}
	base, mine := l.base, l.State
	out := theirs.copy()
	if len(mine.Hashes) >= len(theirs.Hashes) && !reflect.DeepEqual(mine.Hashes, base.Hashes) {
		out.Hashes, out.Open, out.Answer = mine.Hashes, mine.Open, mine.Answer
		out.Run, out.Latest, out.Step, out.Usage, out.Answered, out.Used, out.TTL = mine.Run, mine.Latest, mine.Step, mine.Usage, mine.Answered, mine.Used, mine.TTL
	} else {
		l.digests = nil
	}
	out.Calls += mine.Calls - base.Calls
	out.Swaps += mine.Swaps - base.Swaps
	out.Runs += mine.Runs - base.Runs
	out.Floor = max(out.Floor, mine.Floor)
	for _, e := range mine.Edits {
		if !slices.ContainsFunc(out.Edits, func(o Edit) bool { return o.same(&e) }) {
			out.Edits = append(out.Edits, e)
		}
	}
	for _, g := range mine.Grafts {
		if !slices.ContainsFunc(out.Grafts, func(o Graft) bool { return o.At == g.At && slices.Equal(o.Keys, g.Keys) }) {
			out.Grafts = append(out.Grafts, g)
		}
	}
	slices.SortStableFunc(out.Grafts, func(a, b Graft) int { return a.At - b.At })
	if l.Marker != nil && same(theirs.Swap, base.Swap) {
		out.Swap, out.CallsAtSwap = mine.Swap, out.Calls-mine.Calls+mine.CallsAtSwap
	} else {
		l.Marker = nil
	}
	for _, h := range mine.Hidden {
		if !slices.ContainsFunc(out.Hidden, func(o json.RawMessage) bool { return slices.Equal(o, h) }) {
			out.Hidden = append(out.Hidden, h)
		}
	}
	for _, name := range mine.Left {
		if !slices.Contains(out.Left, name) {
			out.Left = append(out.Left, name)
		}
	}
	out.Plugins = mergeValues(base.Plugins, theirs.Plugins, mine.Plugins)
	out.Money = mergeMoney(base.Money, theirs.Money, mine.Money)
	l.State, l.base, l.Messages = out, theirs.copy(), nil
	l.Moved++
}

func (e *Edit) same(o *Edit) bool {
	return e.Item == o.Item && e.Block == o.Block && e.Text == o.Text && (len(e.Value) > 0) == (len(o.Value) > 0)
}

func same(a, b *Swap) bool { return (a == nil) == (b == nil) && (a == nil || a.Marker == b.Marker) }

// mergeValues adds to their values what changed in mine. Of a value that both have changed a number has the sum of both changes, and
// another one is mine.
func mergeValues(base, theirs, mine []byte) []byte {
	if slices.Equal(mine, base) {
		return theirs
	}
	b, t, m := Unpack(base), Unpack(theirs), Unpack(mine)
	out := state.Image{Revision: max(t.Revision, m.Revision) + 1, Values: map[string]any{}}
	for name, v := range t.Values {
		if _, still := m.Values[name]; still || b.Values[name] == nil {
			out.Values[name] = v
		}
	}
	for name, v := range m.Values {
		old, had := b.Values[name]
		switch now, there := t.Values[name]; {
		case had && reflect.DeepEqual(v, old):
			// only they may have changed it
		case there && !reflect.DeepEqual(now, old):
			out.Values[name] = sum(old, now, v)
		default:
			out.Values[name] = v
		}
	}
	return Pack(out)
}

// sum adds two changes of a number. Of other values it is the later one.
func sum(old, theirs, mine any) any {
	switch m := mine.(type) {
	case int64:
		t, ok := theirs.(int64)
		o, _ := old.(int64)
		if ok {
			return t + m - o
		}
	case float64:
		t, ok := theirs.(float64)
		o, _ := old.(float64)
		if ok {
			return t + m - o
		}
	}
	return mine
}

// mergeMoney adds to their account what mine has more than at first.
func mergeMoney(base, theirs, mine *money.Account) *money.Account {
	if mine == nil {
		return theirs
	}
	if theirs != nil {
		mine.Ledger.Add(&theirs.Ledger)
		if base != nil {
			mine.Subtract(&base.Ledger)
		}
	}
	return mine
}

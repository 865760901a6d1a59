package compaction_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// TestDrop drops what no view shows: not what is pinned, not the latest request, no call that may still be answered, and no half of a round.
func TestDrop(t *testing.T) {
	t.Parallel()
	log := []abi.Message{
		user("u1", "first"), calls("a1", "c1"), result("t1", "c1", "one"), pinned(user("u2", "keep this")), calls("a2", "c2", "c3"), result("t2", "c2", "two"),
		assistant("a3", "three"), user("u3", "latest"), assistant("a4", "four"), calls("a5", "c5"), result("t5", "c5", "five"), assistant("a6", "six"),
	}
	marker := func(to string) compaction.Marker {
		return compaction.Marker{ID: "up to " + to, FromID: "u1", ToID: to, Summary: "summary", Policy: "p"}
	}
	state := compaction.State{Markers: []compaction.Marker{marker("t1"), marker("a4"), marker("t5")}, Total: 3}
	view := func(s compaction.State, log []abi.Message) []abi.Message {
		t.Helper()
		mem := compaction.NewMemory()
		if _, err := mem.Swap(thread, 0, s); err != nil {
			t.Fatal(err)
		}
		return newDesk().at(t, says(""), func(c *compaction.Config) { c.Store = mem }).View(thread, log)
	}
	for _, c := range []struct {
		first   int
		dropped []int
		markers int
	}{
		{0, nil, 3},
		{2, []int{0}, 3}, // a1 waits for its result within the first two
		{3, []int{0, 1, 2}, 3},
		{9, []int{0, 1, 2, 6, 8}, 2}, // a2 has a call without a result
		{12, []int{0, 1, 2, 6, 8, 9, 10}, 1},
	} {
		s := state
		s.Markers = slices.Clone(state.Markers)
		places, rest := s.Drop(log, c.first)
		if !slices.Equal(places, c.dropped) || len(s.Markers) != c.markers || s.Dropped != len(places) || s.Forgot != (len(places) > 0) {
			t.Errorf("of the first %d: %v are dropped, %d markers stay; want %v and %d", c.first, places, len(s.Markers), c.dropped, c.markers)
		}
		if !slices.Equal(ids(rest), ids(log)) {
			t.Errorf("of the first %d: ids are %q", c.first, ids(rest))
		}
		for i := range rest {
			if rest[i].Role != log[i].Role {
				t.Errorf("of the first %d: message %d is listed as one of %s", c.first, i, rest[i].Role)
			}
		}
		if again, _ := s.Drop(rest, c.first); len(again) != 0 {
			t.Errorf("of the first %d: %v are dropped again", c.first, again)
		}
		for ok := true; ok && len(s.Markers) > 0; _, ok = s.Undo() { // also after each undo that is possible
			before := state
			before.Markers = state.Markers[:slices.IndexFunc(state.Markers, func(m compaction.Marker) bool { return m.ID == s.Markers[len(s.Markers)-1].ID })+1]
			late := result("late", "c3", "late")
			for _, more := range [][]abi.Message{nil, {late}, {late, user("u9", "next")}} {
				got, want := view(s, slices.Concat(rest, more)), view(before, slices.Concat(log, more))
				if !reflect.DeepEqual(got, want) {
					t.Errorf("of the first %d: the view of %s is %q, want %q", c.first, s.Markers[len(s.Markers)-1].ID, ids(got), ids(want))
				}
			}
		}
	}
	state.InFlight = &compaction.InFlight{ID: "f"}
	if places, _ := state.Drop(log, len(log)); places != nil {
		t.Errorf("%v are dropped while a compaction is under way", places)
	}
}

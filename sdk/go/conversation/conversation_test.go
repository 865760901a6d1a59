//go:build !wasip1

package conversation_test

import (
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/conversation"
)

//nolint:paralleltest // Provide is for the whole module
func TestGet(t *testing.T) {
	var all []mortise.Message
	for _, id := range []string{"a", "b", "c"} {
		all = append(all, mortise.Message{ID: id, Role: mortise.RoleUser})
	}
	defer conversation.Provide(all)()
	for _, tc := range []struct {
		from, to int
		want     string
	}{{0, 3, "abc"}, {1, 2, "b"}, {2, 99, "c"}, {5, 9, ""}, {2, 1, ""}, {-1, 2, ""}} {
		got, total, err := conversation.Get(tc.from, tc.to)
		if err != nil {
			t.Fatal(err)
		}
		ids := ""
		for _, m := range got {
			ids += m.ID()
		}
		if ids != tc.want || (total != 3 && total != 0) {
			t.Errorf("%d to %d: %q of %d, want %q", tc.from, tc.to, ids, total, tc.want)
		}
	}
}

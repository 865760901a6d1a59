package session_test

import (
	"fmt"
	"os"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
)

// A folder keeps a conversation and what a compactor must not forget of it.
func Example() {
	folder, err := os.MkdirTemp("", "session")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	dir, err := session.Create(folder)
	if err != nil {
		panic(err)
	}
	defer dir.Close()
	if err := dir.Append("main", abi.Message{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Mend the build.")}}); err != nil {
		panic(err)
	}
	if _, err := dir.Swap("main", 0, compaction.State{Total: 1, Markers: []compaction.Marker{{ID: "c1", FromID: "m1", ToID: "m1"}}}); err != nil {
		panic(err)
	}
	log, err := dir.Log("main")
	state, rev, err2 := dir.Load("main")
	fmt.Println(len(log), "message,", len(state.Markers), "marker at revision", rev, err, err2)
	// Output: 1 message, 1 marker at revision 1 <nil> <nil>
}

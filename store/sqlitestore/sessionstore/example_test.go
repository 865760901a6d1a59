package sessionstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

// The file of a mailbox keeps conversations too, and what a compactor must not forget of them.
func ExampleNew() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: filepath.Join(dir, "mortise.db")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close(ctx)
	sessions, err := sessionstore.New(ctx, file)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer sessions.Close()
	err = sessions.Append("main", abi.Message{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Mend the build.")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = sessions.Swap("main", 0, compaction.State{Total: 1, Markers: []compaction.Marker{{ID: "c1", FromID: "m1", ToID: "m1"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	log, err := sessions.Log("main")
	state, rev, err2 := sessions.Load("main")
	fmt.Println(len(log), "message,", len(state.Markers), "marker at revision", rev, err, err2)
	// Output: 1 message, 1 marker at revision 1 <nil> <nil>
}

package sessionstore_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/sessionstore"
)

// The cluster of a mailbox keeps conversations too, and what a compactor must not forget of them. Here the server runs
// in this process; give the addresses of a cluster instead.
func ExampleNew() {
	err := servertest.With(func(url string) error {
		ctx := context.Background()
		mailbox, err := natsstore.Open(ctx, natsstore.Config{URL: url, Name: "agents"})
		if err != nil {
			return err
		}
		defer mailbox.Close(ctx)
		sessions, err := sessionstore.New(ctx, mailbox)
		if err != nil {
			return err
		}
		defer sessions.Close()
		err = sessions.Append("main", abi.Message{ID: "m1", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Mend the build.")}})
		if err != nil {
			return err
		}
		_, err = sessions.Swap("main", 0, compaction.State{Total: 1, Markers: []compaction.Marker{{ID: "c1", FromID: "m1", ToID: "m1"}}})
		if err != nil {
			return err
		}
		log, err := sessions.Log("main")
		if err != nil {
			return err
		}
		state, _, err := sessions.Load("main")
		fmt.Println(len(log), "message,", len(state.Markers), "marker")
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: 1 message, 1 marker
}

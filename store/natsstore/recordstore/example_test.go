package recordstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/recordstore"
)

// The cluster of a mailbox keeps who decided what, too. Here the server runs in this process; give the addresses of a
// cluster instead.
func ExampleNew() {
	err := servertest.With(func(url string) error {
		ctx := context.Background()
		mailbox, err := natsstore.Open(ctx, natsstore.Config{URL: url, Name: "agents"})
		if err != nil {
			return err
		}
		defer mailbox.Close(ctx)
		records, err := recordstore.New(ctx, mailbox, record.Config{Keep: 100})
		if err != nil {
			return err
		}
		defer records.Close()
		err = errors.Join(
			records.Start(record.Start{Run: abi.RunIdentity{ThreadID: "t", RunID: "run-1"}}),
			records.Add("run-1", record.Entry{Plugin: "guard", Gate: &record.Gate{Action: abi.GateBlock, Reason: "deletes everything"}}),
			records.End("run-1", record.End{Type: "blocked"}),
		)
		if err != nil {
			return err
		}
		r, err := records.Load("run")
		if err != nil {
			return err
		}
		fmt.Println(r.Ends[0].Type, "by", r.Entries[0].Plugin, "because it", r.Entries[0].Gate.Reason)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: blocked by guard because it deletes everything
}

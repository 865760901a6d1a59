package recordstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/recordstore"
)

// The file of a mailbox keeps who decided what, too.
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
	records, err := recordstore.New(ctx, file, record.Config{Keep: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer records.Close()
	err = errors.Join(
		records.Start(record.Start{Run: abi.RunIdentity{ThreadID: "t", RunID: "run-1"}}),
		records.Add("run-1", record.Entry{Plugin: "guard", Gate: &record.Gate{Action: abi.GateBlock, Reason: "deletes everything"}}),
		records.End("run-1", record.End{Type: "blocked"}),
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := records.Load("run")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Ends[0].Type, "by", r.Entries[0].Plugin, "because it", r.Entries[0].Gate.Reason)
	// Output: blocked by guard because it deletes everything
}

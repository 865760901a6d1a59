package blob_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/mortise-dev/mortise/blob"
	"github.com/mortise-dev/mortise/store/memstore"
)

// A large result is kept aside, and read where it matters.
func Example() {
	ctx := context.Background()
	r, err := blob.New(blob.Config{Store: memstore.New()})
	if err != nil {
		panic(err)
	}
	shown := r.Shorten(ctx, "thread-1", "build", strings.Repeat("a line of output\n", 5000))
	fmt.Println(len(shown) < 3000, strings.Contains(shown, "[… 4900 lines elided …]"))
	_, rest, _ := strings.Cut(shown, "stored as ")
	handle, _, _ := strings.Cut(rest, ". Use")
	page, err := r.Read(ctx, "thread-1", handle, 17_000, 16)
	fmt.Println(page.Text, page.Total, err)
	// Output:
	// true true
	// a line of output 85000 <nil>
}

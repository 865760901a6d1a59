package relay_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/mortise-dev/mortise/relay"
)

// A large result is kept aside, and read where it matters.
func Example() {
	folder, err := os.MkdirTemp("", "relay")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	r, err := relay.New(relay.Config{Folder: folder})
	if err != nil {
		panic(err)
	}
	defer r.Close()
	shown := r.Shorten(context.Background(), "build", strings.Repeat("a line of output\n", 5000))
	fmt.Println(len(shown) < 3000, strings.Contains(shown, "[… 4900 lines elided …]"))
	_, rest, _ := strings.Cut(shown, "stored as ")
	handle, _, _ := strings.Cut(rest, ". Use")
	page, err := r.Read(handle, 17_000, 16)
	fmt.Println(page.Text, page.Total, err)
	// Output:
	// true true
	// a line of output 85000 <nil>
}

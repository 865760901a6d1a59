package host_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/host"
)

// A module imports functions of others by the names that they are linked under.
func ExampleLink() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	m, err := h.Load(ctx, host.Spec{Path: "testdata/link_main.wasm", Links: []host.Link{
		{Name: "base", Path: "testdata/link_base.wasm"},
		{Name: "middle", Path: "testdata/link_middle.wasm"},
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := m.Call(ctx, "answer", nil)
	fmt.Println(string(out), err, len(m.Info().Links))
	// Output: base <nil> 2
}

package host_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/host"
)

// BenchmarkModule_Call echoes in bulk and word by word.
func BenchmarkModule_Call(b *testing.B) {
	for _, e := range engines() {
		for _, name := range []string{"echo", "echo_pdk"} {
			m := load(b, e, host.Spec{Path: wat(name)})
			for _, n := range []int{0, 4 << 10, 64 << 10} {
				b.Run(fmt.Sprintf("%s/%s/%d", e, name, n), func(b *testing.B) {
					in := make([]byte, n)
					b.ReportAllocs()
					for b.Loop() {
						if _, err := m.Call(b.Context(), "echo", in); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

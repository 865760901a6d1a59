package wire_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

// TestTake decodes what Unmarshal does, and shares memory where Unmarshal does not.
func TestTake(t *testing.T) {
	t.Parallel()
	for _, f := range append(formats(), "") {
		for _, v := range []any{"short", strings.Repeat("long ", 2000)} {
			data, err := f.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			var kept, taken any
			if err := errors.Join(f.Unmarshal(data, &kept), f.Take(bytes.Clone(data), &taken)); err != nil {
				t.Fatal(err)
			}
			clear(data) // Unmarshal keeps nothing of it
			if kept != v || taken != v {
				t.Errorf("%s: %.20q and %.20q, want %.20q", f, kept, taken, v)
			}
		}
		if err := f.Take([]byte{0xc1}, new(any)); err == nil {
			t.Errorf("%s: a broken input was taken", f)
		}
	}
}

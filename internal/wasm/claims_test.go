package wasm_test

import (
	"errors"
	"testing"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// TestClaimsAreCheckedAgainstTheBytes: each of these few bytes would make an
// engine ask for gigabytes.
func TestClaimsAreCheckedAgainstTheBytes(t *testing.T) {
	t.Parallel()
	const many = "\xff\xff\xff\x7f" // 268,435,455
	for name, section := range map[string]string{
		"globals":            "\x06" + many,
		"element segments":   "\x09" + many,
		"elements":           "\x09\x01\x01\x00" + many,
		"element expression": "\x09\x01\x05\x70" + many,
		"data segments":      "\x0b" + many,
		"bytes of data":      "\x0b\x01\x01" + many,
		"tags":               "\x0d" + many,
		"names":              "\x00\x04name\x01\x04" + many,
		"local names":        "\x00\x04name\x02\x06\x01\x00" + many,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := section[1:]
			bin := "\x00asm\x01\x00\x00\x00" + section[:1] + string(rune(len(body))) + body
			m, err := wasm.Parse([]byte(bin))
			if err == nil {
				err = m.Names
			}
			if !errors.Is(err, wasm.ErrMalformed) {
				t.Errorf("%d bytes: error %v, want ErrMalformed", len(bin), err)
			}
		})
	}
}

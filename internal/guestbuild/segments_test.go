package main_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	guestbuild "github.com/mortise-dev/mortise/internal/guestbuild"
)

// module is a module of a custom section and a data section.
func module(data ...byte) []byte {
	out := []byte("\x00asm\x01\x00\x00\x00\x00\x03\x02hi")
	out = append(out, 11)
	return append(binary.AppendUvarint(out, uint64(len(data))), data...)
}

// image reads the memory that a module starts with, and counts its segments.
func image(t *testing.T, in []byte) (memory []byte, segments int) {
	t.Helper()
	memory = make([]byte, 4<<20)
	for rest := in[8:]; len(rest) > 0; {
		id := rest[0]
		size, n := binary.Uvarint(rest[1:])
		body := rest[1+n : 1+n+int(size)]
		rest = rest[1+n+int(size):]
		if id != 11 {
			continue
		}
		count, n := binary.Uvarint(body)
		for body = body[n:]; count > 0; count-- {
			segments++
			if body[0] != 0 || body[1] != 0x41 {
				t.Fatalf("a segment of another kind: % x", body[:2])
			}
			// Offsets are below 2^31 and not negative, so unsigned LEB128 reads them.
			offset, n := binary.Uvarint(body[2:])
			size, m := binary.Uvarint(body[3+n:])
			copy(memory[offset:], body[3+n+m:3+n+m+int(size)])
			body = body[3+n+m+int(size):]
		}
	}
	return memory, segments
}

func TestMergeData(t *testing.T) {
	t.Parallel()
	// Three segments: at 64 "ab", at 70 "cd", at 1000 "ef".
	three := module(3, 0, 0x41, 0xc0, 0x00, 0x0b, 2, 'a', 'b', 0, 0x41, 0xc6, 0x00, 0x0b, 2, 'c', 'd', 0, 0x41, 0xe8, 0x07, 0x0b, 2, 'e', 'f')
	out, err := guestbuild.MergeData(three)
	if err != nil {
		t.Fatal(err)
	}
	want := module(2, 0, 0x41, 0xc0, 0x00, 0x0b, 8, 'a', 'b', 0, 0, 0, 0, 'c', 'd', 0, 0x41, 0xe8, 0x07, 0x0b, 2, 'e', 'f')
	if !bytes.Equal(out, want) {
		t.Errorf("% x, want % x", out, want)
	}
	for name, kept := range map[string][]byte{
		"overlapping": module(2, 0, 0x41, 8, 0x0b, 2, 'a', 'b', 0, 0x41, 8, 0x0b, 1, 'c'),
		"passive":     module(1, 1, 1, 'a'),
		"a global":    module(1, 0, 0x23, 0, 0x0b, 1, 'a'),
		"negative":    module(1, 0, 0x41, 0x7f, 0x0b, 1, 'a'),
		"none":        module(0),
	} {
		if out, err := guestbuild.MergeData(kept); err != nil || !bytes.Equal(out, kept) {
			t.Errorf("%s: % x, %v", name, out, err)
		}
	}
	for name, broken := range map[string][]byte{
		"short": []byte("\x00asm"), "no data": module(), "count": module(9), "cut": module(1, 0, 0x41, 8, 0x0b, 9, 'a'), "endless": module(1, 0, 0x41, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"section": append(module(0), 5, 99),
	} {
		if _, err := guestbuild.MergeData(broken); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestMergedGuests: joining what is joined changes nothing, and few segments are left.
func TestMergedGuests(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"admission", "summarizers"} {
		in, err := os.ReadFile(filepath.Join("..", "..", "testdata", "guests", name+".wasm"))
		if err != nil {
			t.Fatal(err)
		}
		out, err := guestbuild.MergeData(in)
		if err != nil || !bytes.Equal(in, out) {
			t.Errorf("%s: joined again it differs, %v", name, err)
		}
		if _, n := image(t, in); n > 50 {
			t.Errorf("%s: %d segments", name, n)
		}
	}
}

// TestMergeKeepsTheMemory compares the memory of many made-up modules.
func TestMergeKeepsTheMemory(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		x := seed*2654435761 + 1
		next := func(n uint64) uint64 { x ^= x << 13; x ^= x >> 7; x ^= x << 17; return x % n }
		data := binary.AppendUvarint(nil, 20)
		at := next(100)
		for range 20 {
			data = append(data, 0, 0x41)
			data = append(signedLEB(data, at), 0x0b)
			size := next(40)
			data = binary.AppendUvarint(data, size)
			for range size {
				data = append(data, byte(next(256)))
			}
			at += size + next(130)
		}
		in := module(data...)
		out, err := guestbuild.MergeData(in)
		if err != nil {
			t.Fatal(err)
		}
		was, before := image(t, in)
		is, after := image(t, out)
		if !bytes.Equal(was, is) || after > before {
			t.Fatalf("seed %d: the memory differs", seed)
		}
	}
}

func signedLEB(out []byte, v uint64) []byte {
	for ; v >= 0x40; v >>= 7 {
		out = append(out, byte(v)|0x80)
	}
	return append(out, byte(v))
}

package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/wire"
)

var update = flag.Bool("update", false, "write the golden vectors instead of comparing")

func folder(parts ...string) string {
	return filepath.Join(append([]string{"..", "..", "testdata", "abi"}, parts...)...)
}

// golden compares data with the file, or writes it.
func golden(t *testing.T, path string, data []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, want) {
		t.Errorf("%s:\n got %q\nwant %q", filepath.Base(path), data, want)
	}
}

func indented(t *testing.T, v any) []byte {
	t.Helper()
	data, err := wire.JSON.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return append(out.Bytes(), '\n')
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, v := range vectors() {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			packed, err := wire.MessagePack.Marshal(v.value)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, folder(v.name+".msgpack"), packed)
			decodesTo(t, wire.MessagePack, packed, v.name, v.value)
			if v.packedOnly {
				return
			}
			text := indented(t, v.value)
			golden(t, folder(v.name+".json"), text)
			decodesTo(t, wire.JSON, text, v.name, v.value)
		})
	}
}

func decodesTo(t *testing.T, f wire.Format, data []byte, name string, want any) {
	t.Helper()
	got := fresh(name)
	if err := f.Unmarshal(data, got); err != nil {
		t.Fatalf("%s: %v", f, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %s\nwant %s", f, indented(t, got), indented(t, want))
	}
}

func TestBad(t *testing.T) {
	t.Parallel()
	for name, data := range badVectors() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, folder("bad", name+".msgpack"), []byte(data))
			err := wire.MessagePack.Unmarshal([]byte(data), fresh(name))
			var refused *wire.DecodeError
			if !errors.As(err, &refused) {
				t.Fatalf("error %v, want a DecodeError", err)
			}
			if refused.Offset < 0 || refused.Offset > len(data) || refused.What == "" {
				t.Errorf("%+v names no place in %d bytes or no reason", refused, len(data))
			}
		})
	}
}

func TestLenient(t *testing.T) {
	t.Parallel()
	for name, pair := range lenientVectors() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := fresh(name)
			if err := wire.JSON.Unmarshal([]byte(pair[1]), want); err != nil {
				t.Fatal(err)
			}
			golden(t, folder("lenient", name+".msgpack"), []byte(pair[0]))
			golden(t, folder("lenient", name+".json"), []byte(pair[1]+"\n"))
			decodesTo(t, wire.MessagePack, []byte(pair[0]), name, want)
		})
	}
}

// TestNoStrayVectors fails for a file that no test wrote, so that SDKs do not
// read what the host no longer promises.
func TestNoStrayVectors(t *testing.T) {
	t.Parallel()
	want := map[string]bool{"README.md": true, ".gitattributes": true}
	for _, v := range vectors() {
		want[v.name+".msgpack"] = true
		want[v.name+".json"] = !v.packedOnly
	}
	for name := range badVectors() {
		want[filepath.Join("bad", name+".msgpack")] = true
	}
	for name := range lenientVectors() {
		want[filepath.Join("lenient", name+".msgpack")] = true
		want[filepath.Join("lenient", name+".json")] = true
	}
	err := filepath.WalkDir(folder(), func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(folder(), path)
		if err == nil && !want[name] {
			t.Errorf("testdata/abi/%s: no test knows it", filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, v := range vectors() {
		kind, _, _ := strings.Cut(v.name, ".")
		kinds[kind] = true
	}
	if got := slices.Sorted(maps.Keys(kinds)); len(got) != 14 {
		t.Errorf("vectors for %q, want all fourteen top-level types", got)
	}
}

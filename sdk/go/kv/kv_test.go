//go:build !wasip1

package kv_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/kv"
)

// These tests share the space of the package, so they do not run in parallel.

func TestSpace(t *testing.T) {
	defer kv.Provide(map[string][]byte{"old": []byte("1")})()
	value := []byte("2")
	if err := kv.Set("new", value); err != nil {
		t.Fatal(err)
	}
	value[0] = 'x'
	if got, found, err := kv.Get("new"); string(got) != "2" || !found || err != nil {
		t.Errorf("%q, %v, %v", got, found, err)
	}
	if was, err := kv.Delete("old"); !was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	if was, err := kv.Delete("old"); was || err != nil {
		t.Errorf("deleted twice: %v, %v", was, err)
	}
	if got, found, err := kv.Get("old"); got != nil || found || err != nil {
		t.Errorf("%q, %v, %v", got, found, err)
	}
	if _, _, err := kv.Get(""); !errors.Is(err, capability.Invalid) {
		t.Errorf("error %v", err)
	}
}

func TestList(t *testing.T) {
	values := map[string][]byte{"b/1": nil}
	var want []string
	for n := range 10 {
		key := fmt.Sprintf("a/%d", n)
		values[key], want = nil, append(want, key)
	}
	defer kv.Provide(values)()
	var got []string
	for key, err := range kv.List("a/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for key, err := range kv.List("") {
		if key != "a/0" || err != nil {
			t.Errorf("%q, %v", key, err)
		}
		break
	}
}

func TestWithoutASpace(t *testing.T) {
	_, _, get := kv.Get("k")
	_, remove := kv.Delete("k")
	for _, err := range []error{get, remove, kv.Set("k", nil)} {
		if !errors.Is(err, capability.Denied) {
			t.Errorf("error %v", err)
		}
	}
	for _, err := range kv.List("") {
		if !errors.Is(err, capability.Denied) {
			t.Errorf("error %v", err)
		}
	}
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00a\x00\x00\x00\x00"))
	f.Add([]byte("\xff\xff\xff\xffa"))
	f.Fuzz(func(t *testing.T, page []byte) {
		n := 0
		for _, key := range kv.Split(page) {
			n += 4 + len(key)
		}
		if n > len(page) {
			t.Errorf("%d bytes of keys in a page of %d", n, len(page))
		}
	})
}

func Example() {
	// A test gives the space; a guest has the operator's.
	defer kv.Provide(nil)()
	if err := kv.Set("owner/main.go", []byte("mira")); err != nil {
		fmt.Println(err)
	}
	value, found, err := kv.Get("owner/main.go")
	fmt.Println(string(value), found, err)
	// Output: mira true <nil>
}

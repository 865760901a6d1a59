//go:build !wasip1

package kv

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/sdk/go/capability"
)

// space is nil until Provide gives one.
var space map[string][]byte

// Provide sets the space of a native test, which the functions change, and returns a
// function that takes it back. Without it everything is denied. It does not exist in a
// guest. Tests that use it do not run in parallel.
func Provide(values map[string][]byte) (restore func()) {
	before := space
	if values == nil {
		values = map[string][]byte{}
	}
	space = values
	return func() { space = before }
}

// page is how many keys are listed at once, small so that tests go through several.
const page = 3

func check(name, key string) error {
	switch {
	case space == nil:
		return &capability.Error{Code: capability.Denied, Text: "denied: " + name + ": give the test a space with kv.Provide"}
	case key == "":
		return &capability.Error{Code: capability.Invalid, Text: "invalid: " + name + ": the key is empty"}
	}
	return nil
}

func get(key string) (value []byte, found bool, err error) {
	if err := check("kv_get", key); err != nil {
		return nil, false, err
	}
	value, found = space[key]
	return bytes.Clone(value), found, nil
}

func set(key string, value []byte) error {
	if err := check("kv_set", key); err != nil {
		return err
	}
	space[key] = append([]byte{}, value...)
	return nil
}

func remove(key string) (was bool, err error) {
	if err := check("kv_delete", key); err != nil {
		return false, err
	}
	_, was = space[key]
	delete(space, key)
	return was, nil
}

func list(prefix, after string) ([]string, error) {
	if err := check("kv_list", "-"); err != nil {
		return nil, err
	}
	var keys []string
	for key := range space {
		if strings.HasPrefix(key, prefix) && key > after {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys[:min(len(keys), page)], nil
}

package state

import "maps"

// Chain puts entries whose hashes are equal into a trie, takes one away, and
// returns what is left. Real hashes do not collide in a test's lifetime.
func Chain(names []string, gone string) map[string]any {
	root := &node{}
	for i, name := range names {
		root = root.with(&leaf{hash: 42, key: name, entry: entry{value: i}}, 0)
	}
	root = root.without(42, gone, 0)
	out := make(map[string]any)
	maps.Insert(out, func(yield func(string, any) bool) {
		root.each(func(k string, e entry) bool { return yield(k, e.value) })
	})
	return out
}

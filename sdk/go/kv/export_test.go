package kv

// Split reads a page of keys.
func Split(page []byte) []string { return split(page) }

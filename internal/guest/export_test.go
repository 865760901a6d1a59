package guest

// CacheSize returns how many encodings a guest keeps and their size in bytes.
func CacheSize(g *Guest) (n, bytes int) {
	g.messages.mu.RLock()
	defer g.messages.mu.RUnlock()
	return g.messages.count, g.messages.bytes
}

// CacheRecount is CacheSize from what is there.
func CacheRecount(g *Guest) (n, bytes int) {
	m := &g.messages
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, t := range m.ring {
		n += len(t.own)
		bytes += cap(t.data) + entryOverhead*len(t.own)
	}
	for key, c := range m.entries {
		if (messageKey{c.tape.thread, c.tape.shown[c.at].ID}) != key || m.ring[c.tape.place] != c.tape {
			return -1, -1
		}
	}
	return n, bytes
}

// The bounds of CacheSize.
const (
	MaxCached      = maxCached
	MaxCachedBytes = maxCachedBytes
)

package guest

// CacheSize returns how many encodings a guest keeps and their size in bytes.
func CacheSize(g *Guest) (n, bytes int) {
	g.messages.mu.RLock()
	defer g.messages.mu.RUnlock()
	return len(g.messages.ring), g.messages.bytes
}

// The bounds of CacheSize.
const (
	MaxCached      = maxCached
	MaxCachedBytes = maxCachedBytes
)

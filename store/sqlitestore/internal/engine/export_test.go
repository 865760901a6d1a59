package engine

// Queued is how many writes wait.
func (f *File) Queued() int {
	f.writer.mu.Lock()
	defer f.writer.mu.Unlock()
	return len(f.writer.queue)
}

// Commits is how many transactions there were.
func (f *File) Commits() int {
	f.writer.mu.Lock()
	defer f.writer.mu.Unlock()
	return f.writer.commits
}

// SoftCommits is how many of them were not flushed.
func (f *File) SoftCommits() int {
	f.writer.mu.Lock()
	defer f.writer.mu.Unlock()
	return f.writer.soft
}

package engine

// TailOf is [Written.Tail] of what a guest wrote.
func TailOf(text string) string {
	w := Written{stderr: Head{Limit: 4 << 10}}
	_, _ = w.stderr.Write([]byte(text))
	return w.Tail()
}

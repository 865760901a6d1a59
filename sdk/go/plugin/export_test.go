package plugin

// Unregister undoes Register, so that a test can run again.
func Unregister() { registered = nil }

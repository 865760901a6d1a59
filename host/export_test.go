package host

// UsePortableMemory makes guests that h loads from now on use the portable memory.
// It reports whether the engine has one.
func UsePortableMemory(h *Host) bool {
	e, ok := h.engine.(*nativeEngine)
	if ok {
		e.portable = true
	}
	return ok
}

package wire

// Glance and Scan are the two ways of checking an input.
var (
	Glance = glance
	Scan   = scan
)

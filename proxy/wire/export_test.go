package wire

// Rest returns what is left when the stream has ended without an empty line.
func (s *Splitter) Rest() []byte { return s.buf }

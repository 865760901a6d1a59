package pgstore

// ErrPanicked is the error of batches whose group panicked.
var ErrPanicked = errPanicked

// Break has calls panic until the store is repaired.
func (s *Store) Break() (repair func()) {
	pool := s.pool
	s.pool = nil
	return func() { s.pool = pool }
}

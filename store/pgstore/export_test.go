package pgstore

// ErrPanicked is the error of batches whose group panicked.
var ErrPanicked = errPanicked

// Break has calls panic until the store is repaired.
func (s *Store) Break() (repair func()) {
	pool := s.pool
	s.pool = nil
	return func() { s.pool = pool }
}

// Waiting returns how many batches are applied or wait.
func (s *Store) Waiting() int { return s.groups.queue.Len() }

package natsstore

// Sweep deletes what is left over, as happens once a day.
func (s *Store) Sweep() { s.sweep() }

// Eager makes a store write a snapshot after each two operations.
func (s *Store) Eager() *Store {
	s.eager = true
	return s
}

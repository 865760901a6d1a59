package natsstore

// Sweep deletes what is left over, as happens once a day.
func (s *Store) Sweep() { s.sweep() }

package pgstore

import "context"

// Exec runs a statement on a connection of the store's.
func (s *Store) Exec(ctx context.Context, sql string) error {
	_, err := s.pool.Exec(ctx, s.sql(sql))
	return err
}

// Idle says how many connections the pool has that nobody uses, and how many in all.
func (s *Store) Idle() (idle, all int32) { st := s.pool.Stat(); return st.IdleConns(), st.TotalConns() }

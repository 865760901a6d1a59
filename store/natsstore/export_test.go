package natsstore

import "github.com/nats-io/nats.go"

// CountWork makes the store count what it looks at of queues, and the connection tells what goes over it. Nothing else uses the store meanwhile.
func CountWork(s *Store) (work *int, traffic func() nats.Statistics) {
	s.looks = new(int)
	return s.looks, s.nc.Stats
}

package mailbox

import "time"

// backoff is how long to wait after a number of failed attempts: base, doubled each
// time up to six times, at most the greatest. No attempt counts as one.
func backoff(base, most time.Duration, attempts int) time.Duration {
	return doubled(base, most, attempts, 6)
}

func doubled(base, most time.Duration, times, limit int) time.Duration {
	n := min(max(times-1, 0), limit)
	if base > most>>n {
		return most
	}
	return base << n
}

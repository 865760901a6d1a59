package trial

import (
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Bounds of a [Recorder].
const (
	// MaxRequests is how many requests are kept, the newest.
	MaxRequests = 8
	// MaxBytes is how large they may be together.
	MaxBytes = 8 << 20
	// MaxAge is how long each is kept.
	MaxAge = time.Hour
)

// Request is what a running policy was asked, and what became of it. One of Summarize and Admit is set.
type Request struct {
	Summarize *abi.SummarizeRequest
	Admit     *abi.AdmitRequest
	// Version is that of the policy that answered; empty for a built-in sample, which none has answered.
	Version string
	// Summary, Decision and Err are its answer, Took is how long it needed.
	Summary  *abi.Summary
	Decision *abi.Decision
	Err      error
	Took     time.Duration
	// Bytes is the size of the request.
	Bytes int
}

// Recorder keeps the latest requests of a policy in memory, for at most [MaxAge]: so also those of a thread
// that was deleted are gone then. The zero Recorder is empty.
type Recorder struct {
	mu    sync.Mutex
	list  []kept
	bytes int
	last  int // number of the newest
}

type kept struct {
	Request

	number int
	timer  *time.Timer
}

// Add keeps a request, unless it is larger than [MaxBytes] by itself. The request must not be changed afterwards.
func (r *Recorder) Add(q Request) {
	if q.Bytes > MaxBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	number := r.last
	r.list = append(r.list, kept{q, number, time.AfterFunc(MaxAge, func() { r.expire(number) })})
	r.bytes += q.Bytes
	for len(r.list) > MaxRequests || r.bytes > MaxBytes {
		r.drop(0)
	}
}

func (r *Recorder) expire(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.list, func(k kept) bool { return k.number == number }); i >= 0 {
		r.drop(i)
	}
}

func (r *Recorder) drop(i int) {
	r.list[i].timer.Stop()
	r.bytes -= r.list[i].Bytes
	r.list = slices.Delete(r.list, i, i+1)
}

// Latest returns the requests that are kept, newest first.
func (r *Recorder) Latest() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Request, 0, len(r.list))
	for _, k := range slices.Backward(r.list) {
		out = append(out, k.Request)
	}
	return out
}

package mailbox

import (
	"context"
	"sync"

	"github.com/mortise-dev/mortise/store"
)

// Submitted is what became of one request of several.
type Submitted struct {
	Submission
	Err error
}

// submitters is how many threads requests are queued for at once.
const submitters = 16

// SubmitBatch queues requests as [Mailbox.SubmitBackground] does, many at a time, those of a thread in their order. It returns what became
// of each, in their order: one that is refused does not keep the others back.
func (m *Mailbox) SubmitBatch(ctx context.Context, list []Request) []Submitted {
	out := make([]Submitted, len(list))
	threads, order := map[string][]int{}, make([][]int, 0, len(list))
	for i := range list {
		if list[i].Thread == "" {
			order = append(order, []int{i})
			continue
		}
		threads[list[i].Thread] = append(threads[list[i].Thread], i)
	}
	for _, places := range threads {
		order = append(order, places)
	}
	var work sync.WaitGroup
	next := make(chan []int)
	for range min(submitters, len(order)) {
		work.Go(func() {
			for places := range next {
				for _, i := range places {
					out[i].Submission, out[i].Err = m.SubmitBackground(ctx, list[i])
				}
			}
		})
	}
	for _, places := range order {
		next <- places
	}
	close(next)
	work.Wait()
	return out
}

// SubmitWithin queues a request through another view of the store, as of a transaction that the caller has begun: see pgstore.Store.Within.
// It is executed when that is committed, and never existed if it is rolled back. Nothing is executed before, so that the Submission is not
// Running. After an error the caller rolls back.
func (m *Mailbox) SubmitWithin(ctx context.Context, s store.Store, r Request) (Submission, error) {
	queued, err := m.enqueue(ctx, m.queue.Within(s), r, nil)
	if err != nil {
		return Submission{}, err
	}
	sub := m.submission(queued)
	sub.Events = nil
	return sub, nil
}

package mailboxtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// Bounds of the processes of testCaps, and what they are asked to do.
const (
	capAll, capTenant = 2, 1
	capProcesses      = 4
	capRequests       = 28
)

// testCaps holds that several processes never execute more at once than they may together, in all and of one tenant, and that all is
// executed in the end, at the first attempt. Open gives n stores on the same data, as processes have them.
func testCaps(t *testing.T, open func(t *testing.T, n int) []store.Store) {
	t.Helper()
	c := &crowd{tenants: map[string]int{}}
	var boxes []*mailbox.Mailbox
	for i, store := range open(t, capProcesses) {
		w := &world{t: t}
		boxes = append(boxes, w.box(mailbox.Config{
			Store: store, Runtime: c, Owner: fmt.Sprint(i), Limits: mailbox.Limits{Claims: capAll, TenantClaims: capTenant},
			Poll: 10 * time.Millisecond, Retry: mailbox.Retry{Aside: 10 * time.Millisecond, MaxAside: 20 * time.Millisecond},
		}))
		must(t, boxes[i].Start(t.Context()))
	}
	subs := make([]mailbox.Submission, capRequests)
	var wg sync.WaitGroup
	for i := range subs {
		wg.Go(func() {
			tenant := []string{"big", "big", "small", "other"}[i%4]
			r := mailbox.Request{Thread: fmt.Sprintf("t%d", i), Tenant: tenant, Messages: []mailbox.Input{{Data: []byte(tenant)}}}
			var err error
			if subs[i], err = boxes[i%len(boxes)].SubmitBackground(t.Context(), r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, sub := range subs {
		d, err := boxes[0].Await(t.Context(), sub.Dispatch)
		must(t, err)
		equal(t, "status", d.Status, mailbox.Acked)
		equal(t, "attempts", d.Attempts, 0)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	equal(t, "executions", c.count, capRequests)
	if c.most > capAll || c.worst > capTenant {
		t.Errorf("%d executions at once, %d of one tenant; there may be %d and %d", c.most, c.worst, capAll, capTenant)
	}
}

// crowd counts executions over all processes.
type crowd struct {
	mu                      sync.Mutex
	now, most, worst, count int
	tenants                 map[string]int
}

func (c *crowd) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	tenant := string(j.Request.Messages[0].Data)
	c.add(tenant, 1)
	defer c.add(tenant, -1)
	// A commit replaces the claim in what stores send one another.
	if err := j.Commit(ctx, mailbox.Commit{ID: j.Dispatch.ID, From: j.Messages, Data: []byte("begun")}); err != nil {
		return mailbox.Result{}, err
	}
	timer := time.NewTimer(rand.N(10 * time.Millisecond)) //nolint:gosec // not a secret
	defer timer.Stop()
	select {
	case <-timer.C:
		return mailbox.Result{}, nil
	case <-ctx.Done():
		return mailbox.Result{}, context.Cause(ctx)
	}
}

func (c *crowd) add(tenant string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.tenants[tenant] += n
	c.most, c.worst = max(c.most, c.now), max(c.worst, c.tenants[tenant])
	c.count += max(n, 0)
}

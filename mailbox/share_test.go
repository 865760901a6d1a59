package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// crowd counts executions over all processes.
type crowd struct {
	mu        sync.Mutex
	now, most int
	tenants   map[string]int
	worst     map[string]int
	done      int
}

func (c *crowd) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	c.add(j.Request.Tenant, 1)
	defer c.add(j.Request.Tenant, -1)
	timer := time.NewTimer(time.Second)
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
	if c.tenants == nil {
		c.tenants, c.worst = map[string]int{}, map[string]int{}
	}
	c.now += n
	c.tenants[tenant] += n
	c.most = max(c.most, c.now)
	c.worst[tenant] = max(c.worst[tenant], c.tenants[tenant])
	if n < 0 {
		c.done++
	}
}

// TestSharedCaps: several processes together never have more executions than they may, and all is executed.
func TestSharedCaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, c := memstore.New(), &crowd{}
		var boxes []*mailbox.Mailbox
		for i := range 4 {
			boxes = append(boxes, started(t, mailbox.Config{
				Runtime: c, Store: store, Owner: fmt.Sprint(i), Limits: mailbox.Limits{Claims: 5, TenantClaims: 3},
			}))
		}
		const requests = 40
		var subs []mailbox.Submission
		var wg sync.WaitGroup
		var mu sync.Mutex
		for i := range requests {
			wg.Go(func() {
				r := request(fmt.Sprintf("t%d", i), "x")
				r.Tenant = map[bool]string{true: "big", false: "small"}[i%4 != 0]
				sub, err := boxes[i%len(boxes)].SubmitBackground(t.Context(), r)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				subs = append(subs, sub)
			})
		}
		wg.Wait()
		sleep(5 * time.Minute)
		equal(t, "executions", c.done, requests)
		if c.most > 5 || c.worst["big"] > 3 || c.most < 3 {
			t.Errorf("%d executions at once, by tenant %v", c.most, c.worst)
		}
		for _, sub := range subs {
			equal(t, "attempts", wantStatus(t, boxes[0], sub.Dispatch, mailbox.Acked).Attempts, 0)
		}
	})
}

func TestSharedCapsAndTheForeground(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		one := started(t, mailbox.Config{Runtime: &script{do: untilStopped}, Store: store, Limits: mailbox.Limits{Claims: 1}})
		two := open(t, mailbox.Config{Runtime: &script{do: untilStopped}, Store: store, Limits: mailbox.Limits{Claims: 1}})
		first := background(t, one, request("t", "first"))
		synctest.Wait()
		if _, err := two.Submit(t.Context(), request("other", "x")); !errors.Is(err, mailbox.ErrFull) {
			t.Errorf("one too many: %v", err)
		}
		_, found, err := two.Run(t.Context(), "other")
		must(t, err)
		equal(t, "something is left", found || record(t, two, "other").Seq > 0, false)
		// One that replaces another is not one too many.
		sub, err := two.Submit(t.Context(), request("t", "second"))
		must(t, err)
		wantStatus(t, two, first.Dispatch, mailbox.Superseded)
		wantStatus(t, two, sub.Dispatch, mailbox.Claimed)
	})
}

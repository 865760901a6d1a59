package mailboxmetrics_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxmetrics"
	"github.com/mortise-dev/mortise/store/memstore"
)

// instant is a runtime that is done at once.
type instant struct{}

func (instant) Run(context.Context, *mailbox.Job) (mailbox.Result, error) {
	return mailbox.Result{}, nil
}

// Metrics are an observer of the mailbox; the registry is served by promhttp.
func ExampleNew() {
	ctx, store, registry := context.Background(), memstore.New(), prometheus.NewRegistry()
	metrics, err := mailboxmetrics.New(mailboxmetrics.Config{Registry: registry, Store: store})
	if err != nil {
		fmt.Println(err)
		return
	}
	box, err := mailbox.New(ctx, mailbox.Config{Store: store, Runtime: instant{}, Observers: []mailbox.Observer{metrics}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer box.Close(ctx)
	sub, err := box.Submit(ctx, mailbox.Request{Messages: []mailbox.Input{{Data: []byte("hello")}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := box.Await(ctx, sub.Dispatch); err != nil {
		fmt.Println(err)
		return
	}
	families, err := registry.Gather()
	for _, f := range families {
		if f.GetName() == "mortise_runs_total" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetLabel()[0].GetValue(), f.GetMetric()[0].GetCounter().GetValue())
		}
	}
	fmt.Println(err)
	// Output:
	// mortise_runs_total completed 1
	// <nil>
}

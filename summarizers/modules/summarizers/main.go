// Command summarizers is the guest with the bundled summarizer policies. The folders below cmd
// hold a guest for each of them alone.
package main

import (
	"github.com/mortise-dev/mortise/sdk/go/summarizer"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/offer"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	summarizer.Register(offer.Guest("summarizers", "The bundled summaries: ledger and gc without a model, anchored with one.",
		offer.Ledger(), offer.GC(), offer.Anchored()))
}

func main() {}

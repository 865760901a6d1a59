// Command gc is a guest with the policy gc alone: a start for one of your own.
package main

import (
	"github.com/mortise-dev/mortise/sdk/go/summarizer"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/offer"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	summarizer.Register(offer.Alone(offer.GC()))
}

func main() {}

// Command admission is the guest with the bundled admission policies. The folders below cmd
// hold a guest for each of them alone.
package main

import (
	"github.com/mortise-dev/mortise/sdk/go/admission"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/offer"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	admission.Register(offer.Guest("admission", "The bundled admissions: by cost, by quota and load, by the share of the window.",
		offer.Cost(), offer.Quota(), offer.Threshold()))
}

func main() {}

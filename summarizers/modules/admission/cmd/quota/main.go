// Command quota is a guest with the policy quota alone: a start for one of your own.
package main

import (
	"github.com/mortise-dev/mortise/sdk/go/admission"
	"github.com/mortise-dev/mortise/summarizers/modules/admission/offer"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	admission.Register(offer.Alone(offer.Quota()))
}

func main() {}

package hybrid

import (
	"errors"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/model"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/anchored"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/extract"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/mask"
)

// Policy is the name under which a module offers this package.
const Policy = "hybrid"

// defaultKeep is how much of an output is left, in bytes.
const defaultKeep = 1200

// Summarize writes the summary. It is never longer than the budget.
func Summarize(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
	masked := *req
	masked.Messages = mask.Results(req.Messages, keep(req.Config))
	write := anchored.Summarize
	if _, err := model.Info(anchored.Role(req.Config)); errors.Is(err, capability.Denied) {
		write = extract.Summarize
	}
	s, err := write(&masked)
	if err != nil {
		return nil, err
	}
	s.Policy = Policy + "/" + s.Policy
	return s, nil
}

func keep(config any) int {
	n := mortise.IntOr(config, "keep_bytes", defaultKeep)
	if n < 100 || n > 1<<20 {
		n = defaultKeep
	}
	return int(n)
}

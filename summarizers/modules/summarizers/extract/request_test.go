package extract_test

import (
	"os"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/extract"
)

// BenchmarkRequest answers the encoded request in the file that MORTISE_REQUEST
// names, decoding included, as the guest does. BenchmarkExtractLong of the host's
// summarizers package runs it to compare.
func BenchmarkRequest(b *testing.B) {
	path := os.Getenv("MORTISE_REQUEST")
	if path == "" {
		skip(b, "no request: set MORTISE_REQUEST, or run BenchmarkExtractLong of the summarizers package")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var r mortise.SummarizeRequest
		d := mortise.NewDecoder(data)
		r.UnmarshalFrom(d)
		if err := d.Err(); err != nil {
			b.Fatal(err)
		}
		if _, err := extract.Summarize(&r); err != nil {
			b.Fatal(err)
		}
	}
}

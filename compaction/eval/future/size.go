package future

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is how long a text may be, in bytes: as long as the vendor's own summary,
// or a share of what is compacted.
type Size struct {
	// Share is above 0 and at most 1; 0 means the vendor's size.
	Share float64
}

// Sizes are the vendor's own, 1 %, 4.3 % (the median of vendors) and 10 %.
func Sizes() []Size { return []Size{{}, {Share: 0.01}, {Share: 0.043}, {Share: 0.1}} }

const vendorSize = "vendor"

// ParseSize reads "vendor", or a share as "4.3%".
func ParseSize(s string) (Size, error) {
	if s == vendorSize {
		return Size{}, nil
	}
	number, ok := strings.CutSuffix(s, "%")
	share, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(share > 0 && share <= 100) {
		return Size{}, fmt.Errorf("future: size %q: write vendor, or a share up to 100%%, as 4.3%%", s)
	}
	return Size{Share: share / 100}, nil
}

// String writes the size as [ParseSize] reads it.
func (s Size) String() string {
	if s.Share == 0 {
		return vendorSize
	}
	return strconv.FormatFloat(s.Share*100, 'g', 4, 64) + "%"
}

// MarshalText is String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// of is the size in a window, in bytes.
func (s Size) of(w *subject) int {
	if s.Share == 0 {
		return len(w.Vendor)
	}
	return int(s.Share * float64(w.bytes))
}

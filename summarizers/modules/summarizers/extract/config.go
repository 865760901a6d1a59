package extract

// Limits that hold unless the config says otherwise.
const (
	defaultBytesPerToken = 3.6
	defaultProseCap      = 48 << 10
	defaultResultCap     = 6 << 10
	defaultTotalCap      = 2 << 20
	minBudgetBytes       = 40
)

// Config is what an operator may set. The zero value is the default.
type Config struct {
	// BytesPerToken turns the budget into bytes, 3.6 by default.
	BytesPerToken float64
	// ProseCap and ResultCap are how many bytes are read of a user's or
	// assistant's message and of a tool result: two thirds from its head, the
	// rest from its tail.
	ProseCap, ResultCap int
	// TotalCap is how many bytes are read in all, newest messages first.
	TotalCap int
}

// ParseConfig reads the fields bytes_per_token, prose_cap, result_cap and
// total_cap. A value out of range is replaced by the default.
func ParseConfig(v any) Config {
	m, _ := v.(map[string]any)
	c := Config{
		BytesPerToken: number(m["bytes_per_token"]),
		ProseCap:      int(number(m["prose_cap"])),
		ResultCap:     int(number(m["result_cap"])),
		TotalCap:      int(number(m["total_cap"])),
	}
	return c.withDefaults()
}

func (c Config) withDefaults() Config {
	if !(c.BytesPerToken >= 1 && c.BytesPerToken <= 8) {
		c.BytesPerToken = defaultBytesPerToken
	}
	c.ProseCap = orDefault(c.ProseCap, 256, 1<<20, defaultProseCap)
	c.ResultCap = orDefault(c.ResultCap, 256, 1<<20, defaultResultCap)
	c.TotalCap = orDefault(c.TotalCap, 4<<10, 16<<20, defaultTotalCap)
	return c
}

func orDefault(n, lo, hi, def int) int {
	if n < lo || n > hi {
		return def
	}
	return n
}

func number(v any) float64 {
	switch n := v.(type) {
	case int64:
		return float64(n)
	case float64:
		if n == n && n > -1e15 && n < 1e15 {
			return n
		}
	}
	return 0
}

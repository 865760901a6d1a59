package wasm

// Most items of a kind that a module may have. For a few bytes of the binary each takes an engine, or this package, up to
// a kilobyte of memory. The largest figures of 250 modules that C, Go, Haskell, Rust, TinyGo and Zig build are 1,719 types
// with 7,727 parameters and results, 20 parameters and 143 results of one type, 32 imports, 10,000 functions, 11 globals,
// 42 exports, 23 sections, 11 element segments and 28,710 data segments.
const (
	maxTypes    = 50_000
	maxImports  = 10_000
	maxFuncs    = 250_000
	maxTables   = 100
	maxGlobals  = 10_000
	maxExports  = 100_000
	maxSections = 10_000
	maxTags     = 1_000
	// maxArity bounds the parameters of a type, and its results, as browsers do; maxValues all of them together.
	maxArity  = 1_000
	maxValues = 250_000
	// maxElements bounds the entries of all element segments together.
	maxElementSegments = 10_000
	maxElements        = 250_000
	maxDataSegments    = 250_000
	// maxConstant bounds the instructions of a constant expression, maxGlobalBytes those of all globals.
	maxConstant    = 1_000
	maxGlobalBytes = 1 << 20
	// maxNames bounds the entries of a name section.
	maxNames = 1_000_000
)

// most refuses more items than are allowed.
func (r *reader) most(n, most int, what string) error {
	if n > most {
		return r.fail(ErrLimit, "%d %s, and %d are allowed", n, what, most)
	}
	return nil
}

// bounded is count with a maximum.
func (r *reader) bounded(least, most int, what string) (int, error) {
	n, err := r.count(least, what)
	if err != nil {
		return 0, err
	}
	return n, r.most(n, most, what)
}

// add counts items of a section that stand in several places, and refuses too many.
func (r *reader) add(n, most int, what string) error {
	r.items += n
	return r.most(r.items, most, what)
}

// countSections refuses a binary of too many sections before any of them is decoded. What is wrong with their headers is
// found later.
func countSections(r reader) error {
	n := 0
	for r.remaining() > 0 {
		n++
		if _, err := r.byte("section id"); err != nil {
			break
		}
		size, err := r.u32("section length")
		if err != nil || int64(size) > int64(r.remaining()) {
			break
		}
		r.pos += int(size)
	}
	return r.most(n, maxSections, "sections")
}

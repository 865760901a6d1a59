package host

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/tetratelabs/wazero/api"
)

// Bounds on windows.
const (
	// maxFollowedCode is how large the code of a module may be, in bytes, whose writes are
	// followed: it is compiled twice. Guests of Go's toolchain are larger, and change too much in a call.
	maxFollowedCode = 256 << 10
	// maxWindows is how many bytes are put back after each call unseen.
	maxWindows = 64 << 10
	// windowStep is to how many bytes windows are rounded.
	windowStep = 4 << 10
	// maxStore is the size of the largest store. One that begins in a window must end in it.
	maxStore = 16
	// maxMisses is how many calls in a row may write elsewhere.
	maxMisses = 8
	// fewCalls and manyCalls are for how many calls writes are not followed when that was in vain.
	fewCalls, manyCalls = 64, 1 << 14
	// fewBytes is how large windows may always stay. Larger ones are opened anew every reviseWindows calls: one
	// call with a large input must not make all later ones put back as much.
	fewBytes      = 16 << 10
	reviseWindows = 1 << 12
	// Calls that take more than heavyFuel, in the mean, lose more by the looks than by the question that these save.
	// They run without, until they take less than lightFuel, for fewSwitches calls at least.
	heavyFuel   = 1 << 17
	lightFuel   = 1 << 15
	fewSwitches = 1 << 10
	// meanOf is of about how many calls the mean is.
	meanOf = 16
	// maxCompared is how much memory is compared to find what a call has changed, in bytes.
	maxCompared = 4 << 20
)

// span is a range of bytes. Those of an image that are empty are cleared rather than copied.
type span struct {
	from, to int
	empty    bool
}

// restore puts the bytes of the image back.
func (s span) restore(data, img []byte) {
	if s.empty {
		clear(data[s.from:s.to])
		return
	}
	copy(data[s.from:s.to], img[s.from:s.to])
}

// windows are two parts of a guest's memory to which a call may write unnoticed: they are put
// back after each call. The guest's code, as it was rewritten, looks at them before each write, and opens the first one to
// everything when it writes elsewhere; see meter.Result.Windows. So after most calls nobody
// needs to be asked what has changed.
type windows struct {
	// globals are the starts and the lengths, as the code looks at them. Those of a guest
	// whose writes cannot be followed are nil.
	globals [4]api.MutableGlobal
	// on tells that the writes of the call in progress are followed.
	on bool
	// wild tells that something else than the guest's code may have written, and where is not known.
	wild bool
	// outside tells that the host has written outside of the windows.
	outside bool
	// at are the windows, with room behind each for what begins in it; bare are the same without.
	at, bare [2]span
	// armed is the length of the first window, as it was before the call.
	armed uint64
	// parts are what is put back, in order.
	parts []span
	// served and missed count calls since the windows were opened. Those that missed are in a row.
	served, missed int
	// closed is for how many calls writes are not followed, wait how many that was last.
	closed, wait int
}

// bindWindows finds the globals that the rewriter exported.
func (i *nativeInstance) bindWindows(exports []string) error {
	for n, name := range exports {
		global, ok := i.guest.ExportedGlobal(name).(api.MutableGlobal)
		if !ok {
			return fmt.Errorf("%w: global %q is not there", ErrEngine, name)
		}
		i.windows.globals[n] = global
	}
	return nil
}

// follow begins with windows that are empty: the first call shows where they belong.
func (w *windows) follow() {
	if w.globals[0] != nil {
		w.on, w.wild, w.outside, w.served, w.missed = true, false, false, 0, 0
		w.at, w.bare = [2]span{}, [2]span{}
		w.arm(nil)
	}
}

// unfollow lets the guest write where it likes.
func (w *windows) unfollow() {
	if w.on = false; w.globals[1] != nil {
		w.globals[1].Set(math.MaxUint32)
	}
}

// arm tells the guest's code where the windows are.
func (w *windows) arm(img []byte) {
	w.parts = w.parts[:0]
	for n, s := range w.at {
		length := max(0, s.to-s.from-(maxStore-1))
		w.globals[2*n].Set(uint64(s.from)) //nolint:gosec // an offset
		w.globals[2*n+1].Set(uint64(length))
		for at := s.from; at < s.to; at += windowStep {
			w.part(span{from: at, to: min(at+windowStep, s.to), empty: allZero(img[at:min(at+windowStep, s.to)])})
		}
	}
	w.armed = w.globals[1].Get()
}

// part adds one to those that are put back.
func (w *windows) part(s span) {
	if last := len(w.parts) - 1; last >= 0 && w.parts[last].to == s.from && w.parts[last].empty == s.empty {
		w.parts[last].to = s.to
		return
	}
	w.parts = append(w.parts, s)
}

// wrote notes that the host writes n bytes at a place of the guest's memory.
func (w *windows) wrote(at uint32, n int) {
	if w.on && n > 0 && !w.at[0].holds(int(at), n) && !w.at[1].holds(int(at), n) {
		w.outside = true
	}
}

func (s span) holds(at, n int) bool { return at >= s.from && at+n <= s.to }

// verifyResets is set by tests: a memory that is not as it was then ends the process.
var verifyResets bool //nolint:gochecknoglobals // nobody else sets it

// resetMemory puts back the memory of a guest that has one. It reports whether it is as it was.
func (i *nativeInstance) resetMemory() bool {
	m := &i.mems.guest
	var ok bool
	if i.windows.on {
		ok = i.resetWindows()
	} else {
		i.windows.reopen()
		ok = m.reset(i.adopted)
	}
	if ok && verifyResets && !bytes.Equal(m.bytes(), i.adopted.image.bytes()) {
		panic(fmt.Sprintf("host: module %q: the memory was not put back: %+v", i.prog.name, i.windows))
	}
	return ok
}

// resetWindows is resetMemory for a call whose writes were followed.
func (i *nativeInstance) resetWindows() bool {
	w, data, img := &i.windows, i.mems.guest.bytes(), i.adopted.image.bytes()
	if w.wild || w.outside || w.globals[1].Get() != w.armed || len(data) != len(img) {
		return i.resetUnseen()
	}
	for _, s := range w.parts {
		s.restore(data, img)
	}
	w.missed = 0
	w.served++
	if w.served%reviseWindows == 0 && w.size() > fewBytes {
		w.follow()
	}
	return true
}

// size is how many bytes are put back after each call.
func (w *windows) size() int { return w.at[0].to - w.at[0].from + w.at[1].to - w.at[1].from }

// resetUnseen puts the memory back after a call that wrote outside of the windows.
func (i *nativeInstance) resetUnseen() bool {
	w, m := &i.windows, &i.mems.guest
	if len(m.bytes()) != i.adopted.size {
		return false
	}
	changed, known := m.memory.changed(i.adopted.image)
	m.memory.distrust()
	if !m.reset(i.adopted) {
		return false
	}
	wild := w.wild
	w.wild, w.outside = false, false
	w.missed++
	if wild || !known || w.missed > maxMisses || !w.cover(changed, len(m.bytes())) {
		w.giveUp()
		return true
	}
	w.arm(i.adopted.image.bytes())
	return true
}

// misplaced tells after a call of some fuel, of a guest whose writes may be followed, whether the instance should make room for one of the
// other kind: whose writes are not followed, or are.
func (i *nativeInstance) misplaced(fuel int64) bool {
	p := i.prog
	i.calls++
	i.mean += (fuel - i.mean) / meanOf
	follows := i.code == p.followed
	switch {
	case follows && i.mean > heavyFuel && !p.eager:
		p.heavy.Store(true)
	case !follows && i.calls >= fewSwitches && i.mean < lightFuel:
		p.heavy.Store(false)
	}
	return p.heavy.Load() == follows
}

// giveUp stops to follow writes for a while, for longer if that was in vain before, too.
func (w *windows) giveUp() {
	w.wait = min(2*w.wait, manyCalls)
	if w.served >= fewCalls || w.wait == 0 {
		w.wait = fewCalls
	}
	w.closed = w.wait
	w.unfollow()
}

// reopen follows writes again after a while.
func (w *windows) reopen() {
	if w.closed > 0 {
		w.closed--
		if w.closed == 0 {
			w.follow()
		}
	}
}

// cover makes the windows cover what a call has changed, too. It fails when they
// would be too large.
func (w *windows) cover(changed []span, size int) bool {
	all := slices.DeleteFunc(append(changed, w.bare[:]...), func(s span) bool { return s.from == s.to })
	if len(all) == 0 {
		return true
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	// The gap between the two windows is the widest one.
	split, widest, end := len(all), 0, 0
	for n, s := range all {
		if gap := s.from - end; n > 0 && gap > widest {
			split, widest = n, gap
		}
		end = max(end, s.to)
	}
	w.bare = [2]span{around(all[:split]), around(all[split:])}
	for n, s := range w.bare {
		if w.at[n] = s; s.to > s.from {
			w.at[n].to = min(s.to+maxStore, size)
		}
	}
	return w.size() <= maxWindows
}

// around is a span around others, which are in order.
func around(spans []span) span {
	if len(spans) == 0 {
		return span{}
	}
	out := span{from: spans[0].from / windowStep * windowStep}
	for _, s := range spans {
		out.to = max(out.to, (s.to+windowStep-1)/windowStep*windowStep)
	}
	return out
}

// differing adds to out what differs between two memories of the same size, in a range.
func differing(out []span, data, img []byte, from, to int) []span {
	for at := from; at < to; at += windowStep {
		end := min(at+windowStep, to)
		if bytes.Equal(data[at:end], img[at:end]) {
			continue
		}
		if last := len(out) - 1; last >= 0 && out[last].to == at {
			out[last].to = end
		} else {
			out = append(out, span{from: at, to: end})
		}
	}
	return out
}

// allZero tells whether a page is empty: whether each byte is the one before, and the
// first is zero.
func allZero(b []byte) bool { return len(b) == 0 || b[0] == 0 && bytes.Equal(b[1:], b[:len(b)-1]) }

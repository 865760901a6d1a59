package ledger

// table numbers names from 1 on. It is a map that is made quickly, for texts of which few are in it.
type table struct {
	first [4096]int32 // the latest name of a hash
	list  []entry
}

// entry is a name, and the one before with its hash.
type entry struct {
	name string
	next int32
}

func newTable(n int) *table { return &table{list: make([]entry, 1, n+1)} }

// hash is a number of some bytes of a name that is not empty, and of its length.
func hash(n string) int {
	k := len(n) - 1
	return (k*1021 ^ int(n[0])*31 ^ int(n[k/2])*257 ^ int(n[k-k/4])*67 ^ int(n[k])*13 ^ int(n[k-k/8])*521) % 4096
}

// find is the number of a name, 0 for one that is not there.
func (t *table) find(n string) int {
	if n == "" {
		return 0
	}
	i := t.first[hash(n)]
	for i != 0 && t.list[i].name != n {
		i = t.list[i].next
	}
	return int(i)
}

// add numbers a name, and returns 0 for the empty one. It reports whether the name is new.
func (t *table) add(n string) (number int, isNew bool) {
	if i := t.find(n); i != 0 || n == "" {
		return i, false
	}
	k := hash(n)
	t.list = append(t.list, entry{n, t.first[k]})
	t.first[k] = int32(len(t.list) - 1)
	return len(t.list) - 1, true
}

package meter

// maxLocals is how many locals a function may have, as in browsers. wazero has no
// bound of its own: a few bytes could ask its compiler for billions.
const maxLocals = 50000

// locals reads the declarations at the start of a function body and returns how
// many locals there are, parameters included.
func (c *cursor) locals(params int) int {
	n := params
	for range c.count(2) {
		more := c.u32()
		if int64(n)+int64(more) > maxLocals {
			c.fail(ErrLimit, "more than %d locals", maxLocals)
			return 0
		}
		n += int(more)
		c.valueType()
	}
	return n
}

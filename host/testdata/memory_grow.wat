;; Grows its memory until it is refused; then returns, or traps.
(module (memory 1)
  (func $fill (loop $more (br_if $more (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))))
  (func (export "pages") (result i32) (memory.size))
  (func (export "keep") (result i32) (call $fill) (i32.const 0))
  (func (export "trap") (result i32) (call $fill) (unreachable)))

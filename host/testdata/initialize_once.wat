;; Returns how often _initialize has run.
(module (global $n (mut i32) (i32.const 0))
  (func (export "_initialize") (global.set $n (i32.add (global.get $n) (i32.const 1))))
  (func (export "count") (result i32) (global.get $n)))

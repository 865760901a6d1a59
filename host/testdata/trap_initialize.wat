;; Traps in the initialisation of its runtime.
(module (func $broken (export "_initialize") (unreachable))
  (func (export "run") (result i32) (i32.const 0)))

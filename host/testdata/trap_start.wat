;; Traps while it is being instantiated.
(module (func $broken (unreachable)) (start $broken)
  (func (export "run") (result i32) (i32.const 0)))

;; Parses, but its code has a type error.
(module (func (export "run") (result i32) (i64.const 0)))

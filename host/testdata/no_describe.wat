;; Lacks one export and has others with the wrong signature.
(module (memory (export "memory") 1)
  (func (export "void"))
  (func (export "wide") (result i64) (i64.const 0))
  (func (export "takes") (param i32) (result i32) (i32.const 0)))

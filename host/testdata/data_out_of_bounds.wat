;; The second segment does not fit into the memory.
(module
  (memory (export "memory") 1)
  (data (i32.const 0) "fits")
  (data (i32.const 65533) "does not")
  (func (export "run") (result i32) (i32.const 0)))

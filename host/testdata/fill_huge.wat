;; Fills and copies 1 GiB at a time, without end.
(module
  (memory (export "memory") 16384)
  (func (export "fill") (result i32)
    (loop $again (memory.fill (i32.const 0) (i32.const 1) (i32.const 0x40000000)) (br $again)) (unreachable))
  (func (export "copy") (result i32)
    (loop $again (memory.copy (i32.const 8) (i32.const 0) (i32.const 0x3ffffff8)) (br $again)) (unreachable)))

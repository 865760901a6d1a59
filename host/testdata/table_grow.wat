;; Wants a table of 50 million elements.
(module
  (table 10 funcref)
  ;; Refuses with what table.grow answers.
  (func (export "grow") (result i32) (table.grow 0 (ref.null func) (i32.const 50000000)))
  (func (export "size") (result i32) (table.size 0))
  ;; Grows one by one until it is refused, and fills the table without end.
  (func (export "slowly") (result i32)
    (loop $more (br_if $more (i32.ne (table.grow 0 (ref.null func) (i32.const 1000)) (i32.const -1))))
    (loop $again (table.fill 0 (i32.const 0) (ref.null func) (table.size 0)) (br $again))
    (unreachable)))

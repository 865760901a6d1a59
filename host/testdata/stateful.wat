;; Keeps state where neither memory nor globals are. Every export refuses with 1 in
;; its first call of an instance, and with another code in the second.
(module
  (memory (export "memory") 1)
  (data $text "x")
  (elem $funcs func $one)
  (table $t 4 funcref)
  (global $ref (mut funcref) (ref.null func))
  (func $one (result i32) (i32.const 1))
  (elem declare func $one)
  (func (export "_initialize") (table.set $t (i32.const 3) (ref.func $one)))
  ;; set by _initialize, so it is there in every instance
  (func (export "initialized") (result i32) (call_indirect $t (result i32) (i32.const 3)))
  (func (export "table_set") (result i32)
    (if (i32.eqz (ref.is_null (table.get $t (i32.const 0)))) (then (return (i32.const 2))))
    (table.set $t (i32.const 0) (ref.func $one)) (i32.const 1))
  (func (export "table_grow") (result i32)
    (if (i32.ne (table.size $t) (i32.const 4)) (then (return (i32.const 2))))
    (drop (table.grow $t (ref.null func) (i32.const 1))) (i32.const 1))
  (func (export "reference") (result i32)
    (if (i32.eqz (ref.is_null (global.get $ref))) (then (return (i32.const 2))))
    (global.set $ref (ref.func $one)) (i32.const 1))
  ;; The second time these trap.
  (func (export "data_drop") (result i32)
    (memory.init $text (i32.const 0) (i32.const 0) (i32.const 1)) (data.drop $text) (i32.const 1))
  (func (export "elem_drop") (result i32)
    (table.init $t $funcs (i32.const 0) (i32.const 0) (i32.const 1)) (elem.drop $funcs) (i32.const 1)))

#include "textflag.h"

// func threadBase() uintptr
TEXT ·threadBase(SB), NOSPLIT, $0-8
	RDFSBASEQ AX
	MOVQ AX, ret+0(FP)
	RET

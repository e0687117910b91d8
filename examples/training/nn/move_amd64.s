#include "textflag.h"

// func maxPairsAVX(to, top, low *float32, blocks int)
TEXT ·maxPairsAVX(SB), NOSPLIT, $0-32
	MOVQ to+0(FP), DI
	MOVQ top+8(FP), SI
	MOVQ low+16(FP), DX
	MOVQ blocks+24(FP), CX

pairs:
	VMOVUPS (SI), Y0
	VMAXPS  (DX), Y0, Y0
	VMOVUPS 32(SI), Y1
	VMAXPS  32(DX), Y1, Y1
	VSHUFPS $0x88, Y1, Y0, Y2
	VSHUFPS $0xDD, Y1, Y0, Y3
	VMAXPS  Y3, Y2, Y2
	VPERMPD $0xD8, Y2, Y2
	VMOVUPS Y2, (DI)
	ADDQ    $64, SI
	ADDQ    $64, DX
	ADDQ    $32, DI
	DECQ    CX
	JNZ     pairs
	VZEROUPPER
	RET

// func copyRowsAVX(to, from *float32, rows, blocks, ld int)
TEXT ·copyRowsAVX(SB), NOSPLIT, $0-40
	MOVQ to+0(FP), DI
	MOVQ from+8(FP), SI
	MOVQ rows+16(FP), CX
	MOVQ blocks+24(FP), R8
	MOVQ ld+32(FP), R9

row:
	MOVQ SI, R10
	MOVQ R8, R11

block:
	VMOVUPS (R10), Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, R10
	ADDQ    $32, DI
	DECQ    R11
	JNZ     block
	ADDQ    R9, SI
	DECQ    CX
	JNZ     row
	VZEROUPPER
	RET

#include "textflag.h"

// func block4x16AVX(k int, a *float32, lda int, b *float32, ldb int, c *float32, ldc int, add bool)
//
// Y0..Y7 hold the block of C, two registers a row; each turn adds the outer product of one column of A and one row of B.
TEXT ·block4x16AVX(SB), NOSPLIT, $0-57
	MOVQ k+0(FP), CX
	MOVQ a+8(FP), SI
	MOVQ lda+16(FP), R8
	MOVQ b+24(FP), DI
	MOVQ ldb+32(FP), R9
	MOVQ c+40(FP), DX
	MOVQ ldc+48(FP), R10
	LEAQ (SI)(R8*2), R11

	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
	VXORPS Y5, Y5, Y5
	VXORPS Y6, Y6, Y6
	VXORPS Y7, Y7, Y7

turn:
	VMOVUPS      (DI), Y8
	VMOVUPS      32(DI), Y9
	VBROADCASTSS (SI), Y10
	VBROADCASTSS (SI)(R8*1), Y11
	VBROADCASTSS (R11), Y12
	VBROADCASTSS (R11)(R8*1), Y13
	VFMADD231PS  Y8, Y10, Y0
	VFMADD231PS  Y9, Y10, Y1
	VFMADD231PS  Y8, Y11, Y2
	VFMADD231PS  Y9, Y11, Y3
	VFMADD231PS  Y8, Y12, Y4
	VFMADD231PS  Y9, Y12, Y5
	VFMADD231PS  Y8, Y13, Y6
	VFMADD231PS  Y9, Y13, Y7
	ADDQ         $4, SI
	ADDQ         $4, R11
	ADDQ         R9, DI
	DECQ         CX
	JNZ          turn

	LEAQ (DX)(R10*2), R12
	CMPB add+56(FP), $0
	JEQ  store
	VADDPS (DX), Y0, Y0
	VADDPS 32(DX), Y1, Y1
	VADDPS (DX)(R10*1), Y2, Y2
	VADDPS 32(DX)(R10*1), Y3, Y3
	VADDPS (R12), Y4, Y4
	VADDPS 32(R12), Y5, Y5
	VADDPS (R12)(R10*1), Y6, Y6
	VADDPS 32(R12)(R10*1), Y7, Y7

store:
	VMOVUPS Y0, (DX)
	VMOVUPS Y1, 32(DX)
	VMOVUPS Y2, (DX)(R10*1)
	VMOVUPS Y3, 32(DX)(R10*1)
	VMOVUPS Y4, (R12)
	VMOVUPS Y5, 32(R12)
	VMOVUPS Y6, (R12)(R10*1)
	VMOVUPS Y7, 32(R12)(R10*1)
	VZEROUPPER
	RET

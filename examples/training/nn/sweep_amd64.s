#include "textflag.h"

// Each works through blocks of 8 elements.

// func dotsAVX(x, y *float32, blocks int) (sum, dot float32)
TEXT ·dotsAVX(SB), NOSPLIT, $0-32
	MOVQ   x+0(FP), SI
	MOVQ   y+8(FP), DI
	MOVQ   blocks+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1

dots:
	VMOVUPS     (SI), Y2
	VADDPS      Y2, Y0, Y0
	VFMADD231PS (DI), Y2, Y1
	ADDQ        $32, SI
	ADDQ        $32, DI
	DECQ        CX
	JNZ         dots

	VEXTRACTF128 $1, Y0, X2
	VEXTRACTF128 $1, Y1, X3
	VADDPS       X2, X0, X0
	VADDPS       X3, X1, X1
	VHADDPS      X1, X0, X0
	VHADDPS      X0, X0, X0
	VMOVSS       X0, sum+24(FP)
	VSHUFPS      $1, X0, X0, X0
	VMOVSS       X0, dot+28(FP)
	VZEROUPPER
	RET

// func shiftAVX(to, from *float32, scale, shift float32, blocks int)
TEXT ·shiftAVX(SB), NOSPLIT, $0-32
	MOVQ         to+0(FP), DI
	MOVQ         from+8(FP), SI
	VBROADCASTSS scale+16(FP), Y0
	VBROADCASTSS shift+20(FP), Y1
	MOVQ         blocks+24(FP), CX
	VXORPS       Y3, Y3, Y3

shift:
	VMOVUPS     (SI), Y2
	VFMADD213PS Y1, Y0, Y2
	VMAXPS      Y3, Y2, Y2
	VMOVUPS     Y2, (DI)
	ADDQ        $32, SI
	ADDQ        $32, DI
	DECQ        CX
	JNZ         shift
	VZEROUPPER
	RET

// func combineAVX(d, z *float32, a, b, c float32, blocks int)
TEXT ·combineAVX(SB), NOSPLIT, $0-40
	MOVQ         d+0(FP), DI
	MOVQ         z+8(FP), SI
	VBROADCASTSS a+16(FP), Y0
	VBROADCASTSS b+20(FP), Y1
	VBROADCASTSS c+24(FP), Y2
	MOVQ         blocks+32(FP), CX

combine:
	VMOVUPS     (SI), Y3
	VFMADD213PS Y2, Y1, Y3
	VFMADD231PS (DI), Y0, Y3
	VMOVUPS     Y3, (DI)
	ADDQ        $32, SI
	ADDQ        $32, DI
	DECQ        CX
	JNZ         combine
	VZEROUPPER
	RET

// func rectifyAVX(y, dy *float32, blocks int)
TEXT ·rectifyAVX(SB), NOSPLIT, $0-24
	MOVQ   y+0(FP), SI
	MOVQ   dy+8(FP), DI
	MOVQ   blocks+16(FP), CX
	VXORPS Y0, Y0, Y0

mask:
	VCMPPS  $1, (SI), Y0, Y1
	VANDPS  (DI), Y1, Y1
	VMOVUPS Y1, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	DECQ    CX
	JNZ     mask
	VZEROUPPER
	RET

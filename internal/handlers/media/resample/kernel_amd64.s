#include "textflag.h"

DATA roundVertical<>+0(SB)/4, $128
GLOBL roundVertical<>(SB), RODATA|NOPTR, $4
DATA roundHorizontal<>+0(SB)/4, $524288
GLOBL roundHorizontal<>(SB), RODATA|NOPTR, $4

// func verticalVectors(dst *int16, src *byte, n, stride int, weights *int16, taps int)
//
// Two rows at a time: their bytes interleaved and widened, so that VPMADDWD
// multiplies and adds a pair of rows for eight samples.
TEXT ·verticalVectors(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ stride+24(FP), DX
	MOVQ weights+32(FP), R8
	MOVQ taps+40(FP), R9
	VPBROADCASTD roundVertical<>(SB), Y15
	XORQ AX, AX               // x
	LEAQ -16(CX), R10         // the last block begins here

column:
	LEAQ (SI)(AX*1), R11      // row pointer
	MOVQ R8, R12              // weight pointer
	MOVQ R9, R13              // taps left
	VMOVDQA Y15, Y0
	VMOVDQA Y15, Y1
	SUBQ $2, R13
	JLT  single

pair:
	VMOVDQU (R11), X2
	VMOVDQU (R11)(DX*1), X3
	VPBROADCASTD (R12), Y4
	VPUNPCKLBW X3, X2, X5
	VPUNPCKHBW X3, X2, X6
	VPMOVZXBW X5, Y5
	VPMOVZXBW X6, Y6
	VPMADDWD Y4, Y5, Y5
	VPMADDWD Y4, Y6, Y6
	VPADDD Y5, Y0, Y0
	VPADDD Y6, Y1, Y1
	LEAQ (R11)(DX*2), R11
	ADDQ $4, R12
	SUBQ $2, R13
	JGE  pair

single:
	ADDQ $2, R13
	JZ   store
	MOVWLZX (R12), BX
	VMOVD BX, X4
	VPBROADCASTD X4, Y4
	VPXOR X3, X3, X3
	VMOVDQU (R11), X2
	VPUNPCKLBW X3, X2, X5
	VPUNPCKHBW X3, X2, X6
	VPMOVZXBW X5, Y5
	VPMOVZXBW X6, Y6
	VPMADDWD Y4, Y5, Y5
	VPMADDWD Y4, Y6, Y6
	VPADDD Y5, Y0, Y0
	VPADDD Y6, Y1, Y1

store:
	VPSRAD $8, Y0, Y0
	VPSRAD $8, Y1, Y1
	VPACKSSDW Y1, Y0, Y0
	VPERMQ $0xD8, Y0, Y0
	VMOVDQU Y0, (DI)(AX*2)
	CMPQ AX, R10
	JGE  done
	ADDQ $16, AX
	CMPQ AX, R10
	JLE  column
	MOVQ R10, AX
	JMP  column

done:
	VZEROUPPER
	RET

// func horizontalVectors(dst *byte, line *int16, n int, start *int32, weights *int16, taps int)
//
// Four samples at a time, each the sum of one window, sixteen taps or eight at
// once; the four sums of eight are folded together at the end.
TEXT ·horizontalVectors(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ line+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ start+24(FP), DX
	MOVQ weights+32(FP), R8
	MOVQ taps+40(FP), R9
	VPBROADCASTD roundHorizontal<>(SB), X15
	LEAQ (R9)(R9*1), R15      // bytes of a window's weights
	MOVQ R15, R9
	ANDQ $~31, R9             // of these, whole steps of sixteen

four:
	MOVLQSX (DX), R10
	MOVLQSX 4(DX), R11
	MOVLQSX 8(DX), R12
	MOVLQSX 12(DX), R13
	LEAQ (SI)(R10*2), R10
	LEAQ (SI)(R11*2), R11
	LEAQ (SI)(R12*2), R12
	LEAQ (SI)(R13*2), R13
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	XORQ AX, AX               // byte offset in the windows
	LEAQ (R8)(R15*2), BX      // weights of the third sample
	CMPQ AX, R9
	JGE  eight

tap:
	VMOVDQU (R10)(AX*1), Y4
	VMOVDQU (R11)(AX*1), Y5
	VMOVDQU (R12)(AX*1), Y6
	VMOVDQU (R13)(AX*1), Y7
	LEAQ (R8)(R15*1), R14
	VPMADDWD (R8)(AX*1), Y4, Y4
	VPMADDWD (R14)(AX*1), Y5, Y5
	LEAQ (BX)(R15*1), R14
	VPMADDWD (BX)(AX*1), Y6, Y6
	VPMADDWD (R14)(AX*1), Y7, Y7
	VPADDD Y4, Y0, Y0
	VPADDD Y5, Y1, Y1
	VPADDD Y6, Y2, Y2
	VPADDD Y7, Y3, Y3
	ADDQ $32, AX
	CMPQ AX, R9
	JLT  tap

eight:
	CMPQ AX, R15
	JGE  fold
	VMOVDQU (R10)(AX*1), X4
	VMOVDQU (R11)(AX*1), X5
	VMOVDQU (R12)(AX*1), X6
	VMOVDQU (R13)(AX*1), X7
	LEAQ (R8)(R15*1), R14
	VPMADDWD (R8)(AX*1), X4, X4
	VPMADDWD (R14)(AX*1), X5, X5
	LEAQ (BX)(R15*1), R14
	VPMADDWD (BX)(AX*1), X6, X6
	VPMADDWD (R14)(AX*1), X7, X7
	VPADDD Y4, Y0, Y0
	VPADDD Y5, Y1, Y1
	VPADDD Y6, Y2, Y2
	VPADDD Y7, Y3, Y3

fold:
	VPHADDD Y1, Y0, Y0
	VPHADDD Y3, Y2, Y2
	VPHADDD Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD X1, X0, X0
	VPADDD X15, X0, X0
	VPSRAD $20, X0, X0
	VPACKSSDW X0, X0, X0
	VPACKUSWB X0, X0, X0
	VMOVD X0, (DI)
	ADDQ $4, DI
	ADDQ $16, DX
	LEAQ (R8)(R15*4), R8
	SUBQ $4, CX
	JNZ  four
	VZEROUPPER
	RET

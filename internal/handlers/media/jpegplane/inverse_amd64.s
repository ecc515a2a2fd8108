#include "textflag.h"

DATA roundColumns<>+0(SB)/4, $1024
GLOBL roundColumns<>(SB), RODATA|NOPTR, $4
DATA roundRows<>+0(SB)/4, $65536
GLOBL roundRows<>(SB), RODATA|NOPTR, $4
DATA middle<>+0(SB)/4, $0x00800080
GLOBL middle<>(SB), RODATA|NOPTR, $4

// func inverseAVX2(dst *byte, stride int, c *[64]int16, rows *[8][8]int16, pairs *[4][8][2]int16, n int)
//
// Rows of coefficients are interleaved by two, so that VPMADDWD adds two
// coefficients' parts for all eight columns. Each row of the sums is then spread
// two by two over eight samples.
TEXT ·inverseAVX2(SB), NOSPLIT, $0-48
	MOVQ dst+0(FP), DI
	MOVQ stride+8(FP), DX
	MOVQ c+16(FP), SI
	MOVQ rows+24(FP), R8
	MOVQ pairs+32(FP), R9
	MOVQ n+40(FP), CX
	MOVQ CX, R10

	// Y0…Y3: coefficients of rows 0 and 1, 2 and 3, 4 and 5, 6 and 7.
	VMOVDQU (SI), X4
	VMOVDQU 16(SI), X5
	VPUNPCKLWD X5, X4, X0
	VPUNPCKHWD X5, X4, X6
	VINSERTI128 $1, X6, Y0, Y0
	VMOVDQU 32(SI), X4
	VMOVDQU 48(SI), X5
	VPUNPCKLWD X5, X4, X1
	VPUNPCKHWD X5, X4, X6
	VINSERTI128 $1, X6, Y1, Y1
	VMOVDQU 64(SI), X4
	VMOVDQU 80(SI), X5
	VPUNPCKLWD X5, X4, X2
	VPUNPCKHWD X5, X4, X6
	VINSERTI128 $1, X6, Y2, Y2
	VMOVDQU 96(SI), X4
	VMOVDQU 112(SI), X5
	VPUNPCKLWD X5, X4, X3
	VPUNPCKHWD X5, X4, X6
	VINSERTI128 $1, X6, Y3, Y3
	// Y8…Y11: pairs of columns of the matrix.
	VMOVDQU (R9), Y8
	VMOVDQU 32(R9), Y9
	VMOVDQU 64(R9), Y10
	VMOVDQU 96(R9), Y11
	VPBROADCASTD roundColumns<>(SB), Y12
	VPBROADCASTD roundRows<>(SB), Y13
	VPBROADCASTD middle<>(SB), X14

row:
	VPBROADCASTD (R8), Y4
	VPBROADCASTD 4(R8), Y5
	VPBROADCASTD 8(R8), Y6
	VPBROADCASTD 12(R8), Y7
	VPMADDWD Y4, Y0, Y4
	VPMADDWD Y5, Y1, Y5
	VPMADDWD Y6, Y2, Y6
	VPMADDWD Y7, Y3, Y7
	VPADDD Y5, Y4, Y4
	VPADDD Y7, Y6, Y6
	VPADDD Y6, Y4, Y4
	VPADDD Y12, Y4, Y4
	VPSRAD $11, Y4, Y4
	VPACKSSDW Y4, Y4, Y4      // columns 0–3 twice, 4–7 twice
	VPERMQ $0x88, Y4, Y4      // 0–7 in each half
	VPSHUFD $0x00, Y4, Y5
	VPSHUFD $0x55, Y4, Y6
	VPSHUFD $0xAA, Y4, Y7
	VPSHUFD $0xFF, Y4, Y4
	VPMADDWD Y8, Y5, Y5
	VPMADDWD Y9, Y6, Y6
	VPMADDWD Y10, Y7, Y7
	VPMADDWD Y11, Y4, Y4
	VPADDD Y6, Y5, Y5
	VPADDD Y7, Y4, Y4
	VPADDD Y5, Y4, Y4
	VPADDD Y13, Y4, Y4
	VPSRAD $17, Y4, Y4
	VEXTRACTI128 $1, Y4, X5
	VPACKSSDW X5, X4, X4
	VPADDSW X14, X4, X4
	VPACKUSWB X4, X4, X4
	VMOVQ X4, AX
	CMPQ R10, $8
	JNE  six
	MOVQ AX, (DI)
	JMP  next

six:
	MOVL AX, (DI)
	SHRQ $32, AX
	MOVW AX, 4(DI)

next:
	ADDQ DX, DI
	ADDQ $16, R8
	DECQ CX
	JNZ  row
	VZEROUPPER
	RET

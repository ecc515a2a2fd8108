#include "textflag.h"

// Go's assembler does not know the widening multiplications and the saturating
// narrowings: they are written as the words that the comments name.

// func verticalVectors(dst *int16, src *byte, n, stride int, weights *int16, taps int)
//
// Sixteen columns at a time, one row after the other.
TEXT ·verticalVectors(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD src+8(FP), R1
	MOVD n+16(FP), R2
	MOVD stride+24(FP), R3
	MOVD weights+32(FP), R4
	MOVD taps+40(FP), R5
	MOVD $128, R11            // rounds
	VDUP R11, V24.S4
	SUB  $16, R2, R6          // the last block begins here
	MOVD $0, R7               // x

column:
	ADD  R1, R7, R8           // row pointer
	MOVD R4, R9               // weight pointer
	MOVD R5, R10              // taps left
	VMOV V24.B16, V16.B16
	VMOV V24.B16, V17.B16
	VMOV V24.B16, V18.B16
	VMOV V24.B16, V19.B16

row:
	VLD1 (R8), [V0.B16]
	ADD  R3, R8
	VLD1R.P 2(R9), [V1.H8]
	VUXTL V0.B8, V2.H8
	VUXTL2 V0.B16, V3.H8
	WORD $0x0e618050          // SMLAL  V16.4S, V2.4H, V1.4H
	WORD $0x4e618051          // SMLAL2 V17.4S, V2.8H, V1.8H
	WORD $0x0e618072          // SMLAL  V18.4S, V3.4H, V1.4H
	WORD $0x4e618073          // SMLAL2 V19.4S, V3.8H, V1.8H
	SUBS $1, R10
	BNE  row

	WORD $0x0f189604          // SQSHRN  V4.4H, V16.4S, #8
	WORD $0x4f189624          // SQSHRN2 V4.8H, V17.4S, #8
	WORD $0x0f189645          // SQSHRN  V5.4H, V18.4S, #8
	WORD $0x4f189665          // SQSHRN2 V5.8H, V19.4S, #8
	ADD  R7<<1, R0, R12
	VST1 [V4.H8, V5.H8], (R12)
	CMP  R6, R7
	BGE  done
	ADD  $16, R7
	CMP  R6, R7
	BLE  column
	MOVD R6, R7
	B    column

done:
	RET

// func horizontalVectors(dst *byte, line *int16, n int, start *int32, weights *int16, taps int)
//
// Four samples at a time, each the sum of one window.
TEXT ·horizontalVectors(SB), NOSPLIT, $0-48
	MOVD dst+0(FP), R0
	MOVD line+8(FP), R1
	MOVD n+16(FP), R2
	MOVD start+24(FP), R3
	MOVD weights+32(FP), R4
	MOVD taps+40(FP), R5
	MOVD $524288, R11         // rounds
	VDUP R11, V24.S4
	LSL  $1, R5, R15          // bytes of a window's weights

four:
	MOVW.P 4(R3), R6
	MOVW.P 4(R3), R7
	MOVW.P 4(R3), R8
	MOVW.P 4(R3), R9
	ADD  R6<<1, R1, R6
	ADD  R7<<1, R1, R7
	ADD  R8<<1, R1, R8
	ADD  R9<<1, R1, R9
	ADD  R15, R4, R12
	ADD  R15, R12, R13
	ADD  R15, R13, R14
	VEOR V16.B16, V16.B16, V16.B16
	VEOR V17.B16, V17.B16, V17.B16
	VEOR V18.B16, V18.B16, V18.B16
	VEOR V19.B16, V19.B16, V19.B16
	MOVD R5, R10              // taps left

tap:
	VLD1.P 16(R6), [V0.H8]
	VLD1.P 16(R4), [V1.H8]
	VLD1.P 16(R7), [V2.H8]
	VLD1.P 16(R12), [V3.H8]
	WORD $0x0e618010          // SMLAL V16.4S, V0.4H, V1.4H
	WORD $0x4e618010          // SMLAL2 V16.4S, V0.8H, V1.8H
	WORD $0x0e638051          // SMLAL V17.4S, V2.4H, V3.4H
	WORD $0x4e638051          // SMLAL2 V17.4S, V2.8H, V3.8H
	VLD1.P 16(R8), [V0.H8]
	VLD1.P 16(R13), [V1.H8]
	VLD1.P 16(R9), [V2.H8]
	VLD1.P 16(R14), [V3.H8]
	WORD $0x0e618012          // SMLAL V18.4S, V0.4H, V1.4H
	WORD $0x4e618012          // SMLAL2 V18.4S, V0.8H, V1.8H
	WORD $0x0e638053          // SMLAL V19.4S, V2.4H, V3.4H
	WORD $0x4e638053          // SMLAL2 V19.4S, V2.8H, V3.8H
	SUBS $8, R10
	BNE  tap

	VADDP V17.S4, V16.S4, V16.S4
	VADDP V19.S4, V18.S4, V18.S4
	VADDP V18.S4, V16.S4, V16.S4
	VADD V24.S4, V16.S4, V16.S4
	WORD $0x4f2c0610          // SSHR V16.4S, V16.4S, #20
	WORD $0x2e612a10          // SQXTUN V16.4H, V16.4S
	WORD $0x2e214a10          // UQXTN V16.8B, V16.8H
	VMOV V16.S[0], R10
	MOVW.P R10, 4(R0)
	MOVD R14, R4              // the next four windows' weights
	SUBS $4, R2
	BNE  four
	RET

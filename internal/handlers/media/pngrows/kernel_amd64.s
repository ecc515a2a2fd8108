#include "textflag.h"

// func subVectors(row, raw *byte, n, stride int)
//
// This and the next two undo a filter of n pixels, one after the other, as each
// needs the one on its left, which stays in a register. Eight bytes are read and
// written of each pixel; what belongs to the pixels behind it is written again by
// them.
TEXT ·subVectors(SB), NOSPLIT, $0-32
	MOVQ row+0(FP), DI
	MOVQ raw+8(FP), SI
	MOVQ n+16(FP), CX
	MOVQ stride+24(FP), DX
	VPXOR X0, X0, X0

sub:
	VMOVQ (SI), X1
	VPADDB X1, X0, X0
	VMOVQ X0, (DI)
	ADDQ DX, SI
	ADDQ DX, DI
	DECQ CX
	JNZ  sub
	RET

// func averageVectors(row, raw, above *byte, n, stride int)
//
// X0 is the complement of the pixel on the left: of complements VPAVGB, which rounds
// up, is the complement of the mean rounded down; and minus what was read, that of
// the pixel.
TEXT ·averageVectors(SB), NOSPLIT, $0-40
	MOVQ row+0(FP), DI
	MOVQ raw+8(FP), SI
	MOVQ above+16(FP), R8
	MOVQ n+24(FP), CX
	MOVQ stride+32(FP), DX
	VPCMPEQB X15, X15, X15
	VMOVDQA X15, X0

average:
	VMOVQ (SI), X1
	VMOVQ (R8), X2
	VPXOR X15, X2, X2
	VPAVGB X2, X0, X0
	VPSUBB X1, X0, X0
	VPXOR X15, X0, X3
	VMOVQ X3, (DI)
	ADDQ DX, SI
	ADDQ DX, R8
	ADDQ DX, DI
	DECQ CX
	JNZ  average
	RET

// func paethVectors(row, raw, above *byte, n, stride int)
//
// In words: X0 is the pixel on the left, X1 that above it, X2 the one above.
TEXT ·paethVectors(SB), NOSPLIT, $0-40
	MOVQ row+0(FP), DI
	MOVQ raw+8(FP), SI
	MOVQ above+16(FP), R8
	MOVQ n+24(FP), CX
	MOVQ stride+32(FP), DX
	VPXOR X0, X0, X0
	VPXOR X1, X1, X1

paeth:
	VPMOVZXBW (R8), X2
	VPMOVZXBW (SI), X10
	VPSUBW X1, X2, X3         // above − above left
	VPSUBW X1, X0, X4         // left − above left
	VPADDW X3, X4, X5
	VPABSW X3, X3             // how far left is from the estimate,
	VPABSW X4, X4             // and above,
	VPABSW X5, X5             // and above left
	VPMINSW X4, X3, X6
	VPMINSW X5, X6, X6
	VPCMPEQW X6, X3, X7
	VPCMPEQW X6, X4, X8
	VPBLENDVB X8, X2, X1, X9
	VPBLENDVB X7, X0, X9, X9
	VPADDB X10, X9, X0
	VPACKUSWB X0, X0, X11
	VMOVQ X11, (DI)
	VMOVDQA X2, X1
	ADDQ DX, SI
	ADDQ DX, R8
	ADDQ DX, DI
	DECQ CX
	JNZ  paeth
	RET

// func addVectors(sums *uint16, row *byte, n int)
TEXT ·addVectors(SB), NOSPLIT, $0-24
	MOVQ sums+0(FP), DI
	MOVQ row+8(FP), SI
	MOVQ n+16(FP), CX

add:
	VPMOVZXBW (SI), Y0
	VPADDW (DI), Y0, Y0
	VMOVDQU Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $16, CX
	JNZ  add
	VZEROUPPER
	RET

// func filterVectors(sub, up, paeth, row, above *byte, n, stride int) (sums [3]uint64)
//
// In bytes: the distances of the estimate from left and above are differences of
// bytes; that from above left is their sum where both point the same way, which is
// never the least then and may saturate, and their difference where they do not.
TEXT ·filterVectors(SB), NOSPLIT, $0-80
	MOVQ sub+0(FP), R8
	MOVQ up+8(FP), R9
	MOVQ paeth+16(FP), R10
	MOVQ row+24(FP), SI
	MOVQ above+32(FP), R11
	MOVQ n+40(FP), CX
	MOVQ stride+48(FP), DX
	MOVQ SI, R12
	SUBQ DX, R12
	MOVQ R11, R13
	SUBQ DX, R13
	VPXOR Y15, Y15, Y15
	VPXOR Y14, Y14, Y14       // sums of Sub, Up, Paeth
	VPXOR Y13, Y13, Y13
	VPXOR Y12, Y12, Y12
	XORQ AX, AX

filter:
	VMOVDQU (SI)(AX*1), Y3
	VMOVDQU (R12)(AX*1), Y0   // left
	VMOVDQU (R11)(AX*1), Y1   // above
	VMOVDQU (R13)(AX*1), Y2   // above left
	VPSUBB Y0, Y3, Y4
	VMOVDQU Y4, (R8)(AX*1)
	VPABSB Y4, Y4
	VPSADBW Y15, Y4, Y4
	VPADDQ Y4, Y14, Y14
	VPSUBB Y1, Y3, Y4
	VMOVDQU Y4, (R9)(AX*1)
	VPABSB Y4, Y4
	VPSADBW Y15, Y4, Y4
	VPADDQ Y4, Y13, Y13
	VPMAXUB Y2, Y1, Y4
	VPMINUB Y2, Y1, Y5
	VPSUBB Y5, Y4, Y5         // how far left is from the estimate
	VPCMPEQB Y4, Y1, Y4       // above ≥ above left
	VPMAXUB Y2, Y0, Y6
	VPMINUB Y2, Y0, Y7
	VPSUBB Y7, Y6, Y7         // how far above is
	VPCMPEQB Y6, Y0, Y6       // left ≥ above left
	VPCMPEQB Y4, Y6, Y4       // both point the same way
	VPADDUSB Y5, Y7, Y6
	VPMAXUB Y5, Y7, Y8
	VPMINUB Y5, Y7, Y9
	VPSUBB Y9, Y8, Y8
	VPBLENDVB Y4, Y6, Y8, Y8  // how far above left is
	VPCMPEQB Y9, Y5, Y5       // left is as near as above
	VPBLENDVB Y5, Y0, Y1, Y0
	VPMINUB Y9, Y8, Y8
	VPCMPEQB Y9, Y8, Y8       // above left is no nearer
	VPBLENDVB Y8, Y0, Y2, Y0
	VPSUBB Y0, Y3, Y4
	VMOVDQU Y4, (R10)(AX*1)
	VPABSB Y4, Y4
	VPSADBW Y15, Y4, Y4
	VPADDQ Y4, Y12, Y12
	ADDQ $32, AX
	CMPQ AX, CX
	JLT  filter
	LEAQ sums+56(FP), DI
	VEXTRACTI128 $1, Y14, X0
	VPADDQ X0, X14, X14
	VPSRLDQ $8, X14, X0
	VPADDQ X0, X14, X14
	VMOVQ X14, (DI)
	VEXTRACTI128 $1, Y13, X0
	VPADDQ X0, X13, X13
	VPSRLDQ $8, X13, X0
	VPADDQ X0, X13, X13
	VMOVQ X13, 8(DI)
	VEXTRACTI128 $1, Y12, X0
	VPADDQ X0, X12, X12
	VPSRLDQ $8, X12, X0
	VPADDQ X0, X12, X12
	VMOVQ X12, 16(DI)
	VZEROUPPER
	RET

package resample

import "golang.org/x/sys/cpu"

// vectors says whether the kernels of kernel_amd64.s (AVX2) run here.
func vectors() bool { return cpu.X86.HasAVX2 }

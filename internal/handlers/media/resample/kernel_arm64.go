package resample

// vectors says that the kernels of kernel_arm64.s (NEON) run here: each arm64
// has them.
func vectors() bool { return true }

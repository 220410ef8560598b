"""The family `ctc_loss`: its kernels, the cases that verify them, the call that is timed."""

"""The recorder: samples GPUs, processes and the host beside a training, and costs it nothing."""

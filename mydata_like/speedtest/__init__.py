"""The speed test: measure each stage of an upload, alone and together, and name the bottleneck."""

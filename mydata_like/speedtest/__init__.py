"""The speed test: measures each stage of an upload alone and together, and names the limit."""

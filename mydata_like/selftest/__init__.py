"""`mydata-like --self-test`: check that this installation works on this computer."""

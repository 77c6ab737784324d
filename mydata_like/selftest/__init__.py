"""`mydata-like --self-test`: checks that this installation works on this computer."""

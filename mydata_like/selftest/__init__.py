"""`mydata-like --self-test`: has this installation all that it needs, on this very computer?"""

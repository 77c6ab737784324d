"""Tables of any length over the ledger, which another process writes meanwhile."""

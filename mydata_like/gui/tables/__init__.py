"""Tables of any length over the ledger, to which another process may write."""

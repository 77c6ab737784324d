"""Long trials with random faults, started by hand; none is part of the gate."""

"""Which worker is dead, and what its neighbours do about it: with real processes, locks and pid namespaces."""

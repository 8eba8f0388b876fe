"""The supervisor of a worker: a small process without Django that starts it, guards its deadlines and outlives it."""

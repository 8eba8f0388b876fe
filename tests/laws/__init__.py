"""The six laws of the engine, each without its guard: the promise that then breaks shows what the guard is for.

`guards` takes guards away, `scenarios_*` are played with them and without, `table` says which belongs to which. Law 4
comes with the broker.
"""

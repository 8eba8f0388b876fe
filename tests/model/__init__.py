"""The engine's protocol as models of a few steps each, and a search over everything that can happen in them.

`checker` searches, `transactions` is the database that the models share, one file a model, `catalogue` says which of
them hold and which break without a guard. `python -m tests.model` prints it all.
"""

"""Verbs of several connections, stepped statement by statement in an order that is drawn: what each may do is known.

`sessions` steps them, `world` is what the tables say, `judge` knows what one commit may have changed, `verbs` and
`errands` are what is called, `calm` brings everything to its end, `machine` draws, `guarded` are fixed interleavings.
"""

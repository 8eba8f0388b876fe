"""What every transport promises, on real servers: PostgreSQL, the brokers, the ledger that writes the claims.

`harnesses` has one entry a transport, `post` the worker around it.
"""

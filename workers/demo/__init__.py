"""The demonstration: a believable installation for an empty database, the same for the same seed, and its life.

Its content (payloads, stages, errors) is what a Brazilian company's jobs would say; it is data and is not translated.
"""

"""Everything at once over thousands of jobs of every kind, and a referee that looks whether a promise was broken.

    python -m tests.crash.storm --profile cluster --minutes 30 --seed 7

`plan` (from the seed alone: who is struck when, which jobs come when) · `servers` (of the storm's own) · `orders`,
`clients`, `people` (those who ask for jobs, and do things to them) · `blows_*` (what happens to workers and servers) ·
`weather` (the run itself) · `evidence`, `referee` (what is left, and what it says) · `report`.
"""

"""The pages that asv does not have: overview, throughput, one for each release. Knows nothing of asv.

`points` is what was measured, `verdicts` judges it, `pages` and `data` write it for people and for the charts,
`assets` brings the scripts of others. Everything in `static` is served as it is.
"""

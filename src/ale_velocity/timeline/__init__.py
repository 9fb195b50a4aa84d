"""The timeline: a generated git repository in which every commit pins a complete stack.

`manifest` reads releases.toml, `writer` turns it into commits.
"""

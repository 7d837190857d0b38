"""What operators of crawlers reported in public, as crawls against the scripted site.

Each file is one report (or one bar that the project set itself) and says in its first lines what is
expected of a crawl.
"""

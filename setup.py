"""The egg that Scrapyd runs: three packages with their data files, no tests."""

from setuptools import find_packages, setup

setup(
    name="sluice",
    version="0.1.0",
    packages=find_packages(include=["project*", "spiders*", "extensions*"]),
    package_data={
        "": ["*.lua", "*.css", "*.js", "*.html", "*.sql", "*.tmpl"],
        "extensions": ["static/*"],
        "spiders": ["fixtures/*"],
    },
    extras_require={"charts": ["youplot==1.0.0"]},
    entry_points={"scrapy": ["settings = project.settings"]},
)

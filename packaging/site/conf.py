# The site of `make site`: the documents of this repository as Sphinx makes them, to be read without a network.
import os
import re

from pygments.lexers.special import TextLexer

project = "weir"
author = "the authors of weir"
extensions = ["myst_parser"]
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "examples/**.md", "packaging/**.md"]
exclude_patterns = ["**/node_modules", "bin"]
html_theme = "furo"
html_title = "weir"
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
myst_heading_anchors = 6
myst_enable_extensions = ["html_image"]
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

# What the sidebar has. Pages that are in no list are found by links and by the search.
navigation = {
    "Start": ["docs/recipes/README", "docs/program", "docs/library", "docs/algorithms", "docs/configuration", "docs/operations",
              "examples/README"],
    "In your stack": ["docs/grpc", "docs/caddy", "docs/envoy", "docs/redis-door", "docs/opentelemetry", "docs/budgets",
                      "docs/shared", "docs/distributed", "docs/audit", "packaging/kubernetes/README"],
    "How it works": ["docs/benchmarks", "docs/architecture", "docs/correctness", "docs/conformance",
                     "docs/decisions/README", "CONTRIBUTING", "docs/releasing", "CHANGELOG", "SECURITY"],
}
# What stands below a page of these lists.
below = {"docs/recipes/README": "*", "docs/decisions/README": "*", "docs/benchmarks": "benchmarks/*", "examples/README": "*/README",
         "docs/shared": "shared-format"}
repository = "https://github.com/weir-go/weir/tree/main/"
link = re.compile(r"(\]\()([^)\s]+)(\))")


def read(app, name, source):
    """Points links to what is no page at the repository, and gives the first page the lists of the sidebar."""
    folder = os.path.dirname(app.env.doc2path(name, base=False))

    def target(match):
        path, _, _ = match[2].partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        path = os.path.normpath(os.path.join(folder, path))
        if path.endswith(".md") or re.search(r"\.(png|svg)$", path):
            return match[0]
        return match[1] + repository + path + match[3]

    # MyST reads a colon in such a text as YAML.
    source[0] = re.sub(r'alt="[^"]*"', lambda match: match[0].replace(":", ","), source[0])
    # Code is left alone: every second part is between fences.
    parts = re.split(r"(?ms)(^```.*?^```$)", source[0])
    source[0] = "".join(part if i % 2 else link.sub(target, part) for i, part in enumerate(parts))
    if name == app.config.root_doc:
        for caption, pages in navigation.items():
            source[0] += contents(f":caption: {caption}", *pages)
    elif name in below:
        source[0] += contents(":glob:", below[name])
    elif not any(name in pages for pages in navigation.values()):
        source[0] = "---\norphan: true\n---\n" + source[0]


def contents(option, *pages):
    return f"\n```{{toctree}}\n:hidden:\n{option}\n\n" + "\n".join(pages) + "\n```\n"


def begin(app, error):
    """Makes the first page, which servers and people look for."""
    if not error:
        with open(os.path.join(app.outdir, "index.html"), "w", encoding="utf-8") as page:
            page.write('<!doctype html><meta http-equiv="refresh" content="0; url=README.html"><a href="README.html">weir</a>\n')


def setup(app):
    app.connect("source-read", read)
    app.connect("build-finished", begin)
    for language in ["mermaid", "caddy", "haproxy"]:  # of which Pygments has no lexer
        app.add_lexer(language, TextLexer)
    return {"parallel_read_safe": True}

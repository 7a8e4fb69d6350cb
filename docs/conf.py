"""How Sphinx makes the site of docs/ (``make docs``). Nothing is fetched."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import gpudiag

sys.path.insert(0, str(Path(__file__).parent / "_site"))

project = "gpudiag"
author = "The gpudiag developers"  # as in CITATION.cff
copyright = author  # of the footer
version = release = gpudiag.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "outside",
    "reference",
    "switcher",
]
exclude_patterns = ["_build", "_site", "rules.md"]  # the site has a page a check
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # types of other libraries, and private ones, have no page

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4  # as GitHub makes them, so that links within docs/ work in both places
nb_execution_mode = "off"  # what commands print is in the pages, and tests/docs compare it with what they print
copybutton_exclude = ".linenos, .gp, .go"  # a session is copied without its prompts and its output
copybutton_prompt_text = r"^\$ "
copybutton_prompt_is_regexp = True
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"  # dataclasses say it in sentences
autodoc_member_order = "bysource"

html_theme = "pydata_sphinx_theme"
html_title = "gpudiag"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_extra_path = ["_build/extra"]  # the reports of the samples, which make docs writes there
linkcheck_ignore = ["examples/"]  # links.py follows those in what was built
html_copy_source = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"**": ["sidebar-nav-bs"]} | {page: [] for page in ("index", "gallery", "examples", "changelog")}
gpudiag_docs_url = os.environ.get("GPUDIAG_DOCS_URL", "")  # where the site will stand; only the switcher asks

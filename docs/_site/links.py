"""Each relative link of the built site leads to a page and a place there: ``python docs/_site/links.py FOLDER``."""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAMES = {"href", "src", "data", "poster"}


class _Page(HTMLParser):
    """The links of a page, what it fetches from elsewhere, and the places that links may lead to."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        loads = tag not in ("a", "area") and not (tag == "link" and dict(attrs).get("rel") == "canonical")
        for name, value in attrs:
            if value and (name == "id" or (name == "name" and tag == "a")):
                self.places.add(value)
            elif value and name in NAMES:
                (self.fetched if loads and urlsplit(value).netloc else self.links).append(value)


@cache
def _page(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def broken(site: Path) -> list[str]:
    """A line for each link that leads nowhere, and for what a page would fetch from elsewhere."""
    wrong: list[str] = []
    for path in sorted(path for path in site.rglob("*.html") if "_static" not in path.relative_to(site).parts):
        wrong.extend(f"{path.relative_to(site)}: {link}: fetched from elsewhere" for link in _page(path).fetched)
        for link in dict.fromkeys(_page(path).links):
            url = urlsplit(link)
            if url.scheme or url.netloc:
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{path.relative_to(site)}: {link}: no such file")
            elif url.fragment and target.suffix == ".html" and unquote(url.fragment) not in _page(target).places:
                wrong.append(f"{path.relative_to(site)}: {link}: no such place in that page")
    return wrong


if __name__ == "__main__":
    lines = broken(Path(sys.argv[1]).resolve())
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(bool(lines))

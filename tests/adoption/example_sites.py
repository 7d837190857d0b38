"""Two small sites in the manner of those that Scrapy's documentation crawls; every word on them is invented here."""

from __future__ import annotations

from tests.sites import Answer, Host, Route

AUTHORS = ("Ada Fern", "Bo Quill", "Cy Ström", "Di O'Hara", "Ed de Vries")
TAGS = ("rain", "work", "tea", "truth", "sea-air")
QUOTE_PAGES, QUOTES_A_PAGE = 6, 5
BOOK_PAGES, BOOKS_A_PAGE = 5, 12
SHELVES = ("Travel", "Poetry", "Odd Things")
STARS = ("One", "Two", "Three", "Four", "Five")


def page(title: str, body: str) -> str:
    return f"<!doctype html><html><head><title>{title}</title></head><body>{body}</body></html>"


def slug(text: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "-" for c in text)


def quote(number: int) -> str:
    author = AUTHORS[number * 3 % len(AUTHORS)]
    tags = [TAGS[number % len(TAGS)], TAGS[(number + 2) % len(TAGS)]][: number % 3]
    links = "".join(f'<a class="tag" href="/tag/{tag}/">{tag}</a>' for tag in tags)
    return (
        f'<div class="quote"><span class="text">“Saying no. {number}, &amp; so on.”</span>'
        f'<span>by <small class="author">{author}</small> <a href="/author/{slug(author)}">about</a></span>'
        f'<div class="tags">Tags: {links}</div></div>'
    )


def quotes_page(number: int) -> str:
    first = (number - 1) * QUOTES_A_PAGE
    quotes = "".join(map(quote, range(first, first + QUOTES_A_PAGE)))
    following = f'<li class="next"><a href="/quotes/{number + 1}/">Next</a></li>'
    pager = f'<ul class="pager">{following if number < QUOTE_PAGES else ""}</ul>'
    return page("Sayings", quotes + pager)


def author_page(name: str) -> str:
    return page(
        name,
        f'<h3 class="author-title">{name}\n    </h3><span class="author-born-date">May {len(name)}, 1901</span>'
        f'<div class="author-description">\n  {name} said a lot.\n</div>',
    )


def book(number: int) -> tuple[str, str]:
    """Its path, and its page."""
    title = f"Book the {number}th of all"
    stars, shelf = STARS[number * 7 % 5], SHELVES[number % len(SHELVES)]
    table = "".join(
        f"<tr><th>{head}</th><td>{cell}</td></tr>"
        for head, cell in (("UPC", f"u{number:05}"), ("Availability", f"In stock ({number % 9})"))
    )
    body = (
        f'<ul class="breadcrumb"><li><a href="/">Home</a></li><li><a href="/books/">{shelf}</a></li></ul>'
        f'<div class="product_main"><h1>{title}</h1><p class="price_color">£{number}.{number % 100:02}</p>'
        f'<p class="star-rating {stars}"></p></div><table>{table}</table>'
    )
    return f"/books/{slug(title)}_{number}/index.html", page(title, body)


def books_page(number: int) -> str:
    first = (number - 1) * BOOKS_A_PAGE
    pods = "".join(
        f'<article class="product_pod"><h3><a href="{book(n)[0]}">Book...</a></h3></article>'
        for n in range(first, first + BOOKS_A_PAGE)
    )
    following = f'<li class="next"><a href="/catalogue/page-{number + 1}.html">next</a></li>'
    return page("All books", pods + (following if number < BOOK_PAGES else ""))


LOGIN = page(
    "Login",
    '<form action="/login" method="post"><input type="hidden" name="csrf" value="x1">'
    '<input name="username"><input name="password" type="password"><input type="submit"></form>',
)


def example_host() -> Host:
    """Both sites on one host."""
    pages = {f"/quotes/{n}/": quotes_page(n) for n in range(1, QUOTE_PAGES + 1)}
    pages |= {f"/author/{slug(name)}": author_page(name) for name in AUTHORS}
    pages |= {f"/tag/{tag}/": quotes_page(QUOTE_PAGES) for tag in TAGS}
    pages |= {f"/catalogue/page-{n}.html": books_page(n) for n in range(1, BOOK_PAGES + 1)}
    pages |= dict(book(n) for n in range(BOOK_PAGES * BOOKS_A_PAGE))
    routes = [Route(path, (Answer(body=body),)) for path, body in pages.items()]
    login = Answer(302, (("Location", "/quotes/1/"), ("Set-Cookie", "session=1; Path=/")))
    routes += [Route("/login", (Answer(body=LOGIN), login))]
    return Host(latency_s=0.01, routes=tuple(routes))

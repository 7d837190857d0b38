"""Spiders as Scrapy's documentation writes them: they know nothing of Sluice, and must not have to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scrapy
from itemloaders.processors import Join, MapCompose, TakeFirst
from scrapy.exceptions import DropItem
from scrapy.http import FormRequest
from scrapy.linkextractors import LinkExtractor
from scrapy.loader import ItemLoader
from scrapy.spiders import CrawlSpider, Rule


class QuotesSpider(scrapy.Spider):
    """The first one of the tutorial: `start_urls`, dicts, `response.follow`; with an argument."""

    name = "quotes"

    def __init__(self, site, tag=None, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/tag/{tag}/" if tag else f"{site}/quotes/1/"]

    def parse(self, response):
        for quote in response.css("div.quote"):
            yield {
                "text": quote.css("span.text::text").get(),
                "author": quote.css("small.author::text").get(),
                "tags": quote.css("div.tags a.tag::text").getall(),
            }
        next_page = response.css("li.next a::attr(href)").get()
        if next_page is not None:
            yield response.follow(next_page, callback=self.parse)


class TagSpider(QuotesSpider):
    """The same from a tag's page."""

    name = "tag"

    def __init__(self, site, **kwargs):
        super().__init__(site, tag="tea", **kwargs)


class AuthorSpider(scrapy.Spider):
    """`follow_all`, two callbacks, authors that many pages link to."""

    name = "author"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/quotes/1/"]

    def parse(self, response):
        yield from response.follow_all(css=".author + a", callback=self.parse_author)
        yield from response.follow_all(css="li.next a", callback=self.parse)

    def parse_author(self, response):
        def extract_with_css(query):
            return response.css(query).get(default="").strip()

        yield {
            "name": extract_with_css("h3.author-title::text"),
            "birthdate": extract_with_css(".author-born-date::text"),
            "bio": extract_with_css(".author-description::text"),
        }


@dataclass
class Quote:
    text: str
    page: int
    author: dict[str, Any] | None = None


class AsyncSpider(scrapy.Spider):
    """`async def start`, a callback that downloads inline, `cb_kwargs`, dataclass items."""

    name = "inline"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.site = site

    async def start(self):
        for page in range(1, 4):
            yield scrapy.Request(f"{self.site}/quotes/{page}/", cb_kwargs={"page": page})

    async def parse(self, response, page):
        for quote in response.css("div.quote"):
            request = response.follow(quote.css(".author + a")[0])
            author = await self.crawler.engine.download_async(request)
            born = author.css(".author-born-date::text").get()
            yield Quote(quote.css(".text::text").get(), page, {"born": born})


class LoginSpider(scrapy.Spider):
    """A form, a redirect, a cookie."""

    name = "login"

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/login"]

    def parse(self, response):
        hidden = {
            name.attrib["name"]: name.attrib["value"] for name in response.css("[type=hidden]")
        }
        return FormRequest(
            response.urljoin(response.css("form::attr(action)").get()),
            formdata={**hidden, "username": "jo", "password": "secret"},
            callback=self.after_login,
        )

    def after_login(self, response):
        yield {"path": response.url.partition("/quotes")[2], "quotes": len(response.css(".quote"))}


class Book(scrapy.Item):
    title = scrapy.Field(output_processor=TakeFirst())
    price = scrapy.Field(
        input_processor=MapCompose(lambda text: float(text.strip("£"))),
        output_processor=TakeFirst(),
    )
    upc = scrapy.Field(output_processor=TakeFirst())
    shelf = scrapy.Field(output_processor=Join())
    stars = scrapy.Field(output_processor=TakeFirst())


class BooksSpider(CrawlSpider):
    """Rules, an Item with a loader, a pipeline that drops and one that changes."""

    name = "books"
    rules = (
        Rule(LinkExtractor(restrict_css=".next")),
        Rule(LinkExtractor(restrict_css=".product_pod"), callback="parse_book"),
    )
    custom_settings = {
        "ITEM_PIPELINES": {
            "tests.adoption.example_spiders.DropCheap": 300,
            "tests.adoption.example_spiders.AddTax": 310,
        }
    }

    def __init__(self, site, **kwargs):
        super().__init__(**kwargs)
        self.start_urls = [f"{site}/catalogue/page-1.html"]

    def parse_book(self, response):
        loader = ItemLoader(item=Book(), response=response)
        loader.add_css("title", "h1::text")
        loader.add_css("price", ".price_color::text")
        loader.add_xpath("upc", "//th[text()='UPC']/following-sibling::td/text()")
        loader.add_css("shelf", ".breadcrumb li:last-child a::text")
        loader.add_css("stars", ".star-rating::attr(class)", re=r"star-rating (\w+)")
        yield loader.load_item()


class DropCheap:
    def process_item(self, item):
        if item["price"] < 10:
            raise DropItem("too cheap")
        return item


class AddTax:
    async def process_item(self, item):
        item["price"] = round(item["price"] * 1.19, 2)
        return item


SPIDERS = (QuotesSpider, TagSpider, AuthorSpider, AsyncSpider, LoginSpider, BooksSpider)

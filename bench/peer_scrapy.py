"""The Scrapy peer: follows every link, takes title and text, as fast as Scrapy goes. Prints the pages it parsed.

    python peer_scrapy.py SEED_URL
"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.linkextractors import LinkExtractor


class Spider(scrapy.Spider):
    name = "peer"
    links = LinkExtractor()
    pages = 0

    async def start(self):
        yield scrapy.Request(sys.argv[1])

    def parse(self, response):
        Spider.pages += 1
        response.css("title::text").get()
        " ".join(response.xpath("//body//text()").getall())
        for link in self.links.extract_links(response):
            yield scrapy.Request(link.url)


process = CrawlerProcess(settings={
    "LOG_ENABLED": False,
    "ROBOTSTXT_OBEY": False,
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "DOWNLOAD_DELAY": 0,
    "AUTOTHROTTLE_ENABLED": False,
    "COOKIES_ENABLED": False,
    "RETRY_ENABLED": False,
    "HTTPERROR_ALLOW_ALL": True,
    "TELNETCONSOLE_ENABLED": False,
    "DEPTH_STATS_VERBOSE": False,
    "REACTOR_THREADPOOL_MAXSIZE": 4,
})
process.crawl(Spider)
process.start()
print(Spider.pages)

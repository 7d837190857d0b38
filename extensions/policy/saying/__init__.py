"""What holds the crawl back, in words: one function a code, by where on the request's way it is."""

"""A local WeChat Pay for developers and tests: the same protocol with its own keys and signatures, and a page that pays
without money."""

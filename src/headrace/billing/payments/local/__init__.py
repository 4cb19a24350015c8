"""WeChat Pay for developers and tests: the same protocol on this machine, with keys and signatures of its own, and a
page on which nobody's money is paid."""

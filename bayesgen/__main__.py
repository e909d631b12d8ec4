"""``python -m bayesgen``."""

from bayesgen.cli import main

main()

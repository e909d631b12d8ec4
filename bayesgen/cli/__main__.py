"""``python -m bayesgen.cli``."""

from bayesgen.cli import main

main()

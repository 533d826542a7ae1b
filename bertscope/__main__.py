import sys

try:
    from bertscope.cli import main

    status = main()
except KeyboardInterrupt:  # before the command line could catch it
    print("bertscope: interrupted", file=sys.stderr)
    status = 130
sys.exit(status)

"""`python -m osmia_memory`: the command line."""

from osmia_memory.cli.app import main

if __name__ == "__main__":
    main()

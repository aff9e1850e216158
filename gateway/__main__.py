"""Run the command line as `python -m gateway`."""

from gateway.cli.main import main

if __name__ == "__main__":
    main()

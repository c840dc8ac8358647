"""One module per subcommand; each has a click command named `command`, imported only when it is asked for."""

"""``tui-agent completion``: what a shell needs to complete the arguments of the command line."""

from argparse import Namespace


def run_completion(arguments: Namespace) -> int:
    """Print the completion script of a shell, made from the parser itself; returns the exit code."""
    import shtab

    from tui_agent.cli.arguments import whole_parser

    print(shtab.complete(whole_parser(), shell=arguments.shell))
    return 0

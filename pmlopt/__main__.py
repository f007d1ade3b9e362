"""`pmlopt` and `python -m pmlopt`: the command line, where an interrupt is an exit code from the start."""

import gc
import sys


def run_command_line() -> None:
    """Run the command line of the program's arguments."""
    is_alone = sys._getframe(1).f_globals is vars(sys.modules["__main__"])  # no part of a program
    if is_alone:
        gc.set_threshold(100_000)  # what is loaded stays: a short command looks through it in vain
    try:
        from pmlopt.cli import main
        from pmlopt.cli.leaving import leave_at_once

        main(prog_name="pmlopt")
    except SystemExit as ended:
        if is_alone:
            leave_at_once(ended.code)
        raise
    except KeyboardInterrupt:  # before a command began, which says it by itself
        sys.stderr.write("pmlopt: interrupted\n")
        sys.exit(130)
    except (ImportError, MemoryError, OSError) as error:  # while the commands are loaded
        from pmlopt.core.failures import is_out_of_memory

        if not is_out_of_memory(error):
            raise
        sys.stderr.write(f"pmlopt: this needs more memory than there is ({error})\n")
        sys.exit(3)


if __name__ == "__main__":
    run_command_line()

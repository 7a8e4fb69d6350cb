"""Was everything read that was found?"""

from __future__ import annotations

from gpudiag.measures.inputs import InputsProfile, measure_inputs
from gpudiag.rules._engine.evidence import Evidence, NotApplicable
from gpudiag.rules._engine.rule import rule
from gpudiag.rules._engine.templates import Given

MOST_NAMED = 3


@rule(
    measure=measure_inputs,
    severity="warning",
    title="An input could not be read completely",
    checks="Inputs read",
    says=(
        "{n_unread} of {n_inputs:input} could not be read completely: {errors}",
        Given("n_more", "; and {n_more} more"),
        ".",
    ),
    remedy="Repair it, wait until its writer has finished, or take it out of the folder. `gpudiag inspect RUN` shows "
    "how each input is read. Where a clock goes back by an hour as winter time begins, state its zone.",
    refuted_by="Not a problem if the input does not belong to this run: name the others in a run.toml.",
)
def input_unread(inputs: InputsProfile) -> Evidence | None:
    """A study or log that is missing from the numbers makes them those of another run.

    Counted are inputs that a reader recognized by content and could not read, or only in part: damaged, cut, locked by
    a writer, of an unknown schema, or with times that go back by a minute or more into what is covered already; one is
    too many (a default without a published source). What is named on the command line or in run.toml must be readable
    and ends the command otherwise.
    """
    if inputs.n_unread:
        named = inputs.unread.head(MOST_NAMED)
        return Evidence(
            values={"n_unread": inputs.n_unread, "n_inputs": inputs.n_inputs},
            where={"path": ", ".join(named["path"])},
            extra={
                "errors": "; ".join(error.rstrip(".") for error in named["error"]),
                "n_more": inputs.n_unread - len(named) or None,
            },
        )
    raise NotApplicable("Every input that was recognized was read whole.")

"""The workloads of estimation: the names of their rows."""

import pandas as pd

from pmlopt.model.utility.estimation_error import workload_rows


def test_rows_of_a_frame_keep_their_names() -> None:
    frame = pd.DataFrame([[1, -1]], index=["no less yes"], columns=["no", "yes"])
    assert workload_rows(frame, ("no", "yes"))[0] == ("no less yes",)
    assert workload_rows({"both": {"yes": 1, "no": 1}}, ("no", "yes"))[0] == ("both",)
    assert workload_rows([[1, -1]], ("no", "yes"))[0] == (0,)

"""The three numbers of a run by which options are weighed: as they are called in predictions."""

from __future__ import annotations

from gpudiag.measures.ledger import LedgerProfile
from gpudiag.measures.memory import MemoryProfile
from gpudiag.measures.trials import TrialState
from gpudiag.measures.utilization import UtilizationProfile
from gpudiag.schema import STATES

MEMORY = (MemoryProfile.max_used_pct.key,)
UTILIZATION = (LedgerProfile.mean_util_pct.key, UtilizationProfile.mean_pct.key)
TRIAL_TIME = tuple(TrialState.median_s.at(state).key for state in STATES)

"""Pictures by matplotlib: owners, as cells in the colours of ranks; and the messages between ranks.

The style is that of Figures 1 and 4 of Dalcin et al. 2019 and Figure 7 of Popovici et al. 2019. A picture is made of
runs of equal owners, not of elements, so that 1024 x 1024 x 1024 is drawn as fast as 4 x 4. Matplotlib is imported when
the first picture is drawn; no window is opened, and no setting of matplotlib is changed.
"""

from .contractions import contraction
from .figures import layout, messages, plan, stages

__all__ = ["contraction", "layout", "messages", "plan", "stages"]

"""Functions of tensors, by the rule that says where their result lies. Importing them enters them into the table."""

from __future__ import annotations

from . import agreed as agreed
from . import dtypes as dtypes
from . import elementwise as elementwise
from . import extrema as extrema
from . import joining as joining
from . import likes as likes
from . import matrices as matrices
from . import nan as nan
from . import norms as norms
from . import ordering as ordering
from . import orthogonal as orthogonal
from . import placing as placing
from . import products as products
from . import reductions as reductions
from . import reshaping as reshaping
from . import scans as scans
from . import sets as sets
from . import sorting as sorting
from . import statistics as statistics
